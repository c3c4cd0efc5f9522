from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hookline.hooks import LambdaHook
from hookline.progress import current_epoch, current_iter, current_position
from tests.helpers import batches, make_runner


def test_the_first_iteration_and_epoch_are_one(tmp_path: Path) -> None:
    seen = []

    def note(site: str):
        return lambda runner: seen.append((site, *current_position(runner)))

    sites = ("before_train_iter", "after_train_iter", "after_epoch", "after_train")
    hook = LambdaHook(**{site: note(site) for site in sites})
    make_runner(tmp_path, hook, train_loader=batches(2)).train()
    epochs = []
    for epoch in (1, 2):
        for number in (2 * epoch - 1, 2 * epoch):
            epochs += [(site, number, epoch) for site in sites[:2]]
        epochs.append(("after_epoch", 2 * epoch, epoch))
    assert seen == [*epochs, ("after_train", 4, 2)]


@pytest.mark.parametrize(
    ("phase", "owns_data", "number"),
    [("", True, 5), ("data", True, 6), ("data", False, 5), ("forward", False, 6)],
)
def test_waiting_for_data_belongs_to_the_iteration_of_our_own_loop(
    phase: str, owns_data: bool, number: int
) -> None:
    loop = SimpleNamespace(phase=phase, owns_data=owns_data)
    runner = SimpleNamespace(loop=loop, iter=5, inner_iter=0, epoch=1)
    assert current_iter(runner) == number
    assert current_epoch(runner) == (2 if number == 6 else 1)
    runner.inner_iter = 1
    assert current_epoch(runner) == 2
