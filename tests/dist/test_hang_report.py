"""The reported iteration of a run, at every site and between sites."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hookline.checkpoint.mirror import Mirror
from hookline.dist.hang_report import make_locator
from hookline.dist.stack_reader import StackReader
from hookline.engine import SITE_NAMES, BaseHook
from hookline.hooks import CheckpointHook, EvalHook, OptimizerHook
from hookline.remote import RemoteDirectory
from tests.helpers import batches, make_runner

# Of sites outside of iterations, in the course of one epoch of two iterations. All others are asked in the first iteration.
OUTSIDE = {
    **dict.fromkeys(
        ["before_run", "before_train", "before_epoch", "before_train_epoch"],
        "before the first iteration",
    ),
    **dict.fromkeys(
        [
            site
            for site in SITE_NAMES
            if "_val" in site or site in ("after_train_epoch", "after_epoch")
        ],
        "epoch 1, after iteration 2",
    ),
    **dict.fromkeys(
        ["before_save_checkpoint", "after_save_checkpoint", "after_train", "after_run", "cleanup"],
        "after iteration 2",
    ),
}


def own_stack() -> StackReader:
    return StackReader(threading.get_ident())


class Asking(BaseHook):
    """Records the reported position of the run at the first call of each site."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}

    def ask(self, site: str) -> None:
        self.answers.setdefault(site, make_locator(self.runner, own_stack().read)(None).text)


for _site in SITE_NAMES:  # each method needs its own lines: hooks are found by them
    if _site != "optimize":
        _namespace: dict[str, Any] = {}
        _source = f"def {_site}(self, runner): self.ask({_site!r})"
        exec(compile(_source, f"<{_site}>", "exec"), _namespace)  # noqa: S102
        setattr(Asking, _site, _namespace[_site])


def test_every_site_names_the_iteration_that_it_belongs_to(tmp_path):
    asking = Asking()
    make_runner(
        tmp_path,
        asking,
        EvalHook(),
        CheckpointHook(),
        train_loader=batches(2),
        val_loader=batches(1),
        max_epochs=1,
    ).train()
    expected = {
        site: f"{OUTSIDE.get(site, 'epoch 1, iteration 1')}, Asking at {site}"
        for site in asking.answers
    }
    assert asking.answers == expected
    assert set(OUTSIDE) < set(asking.answers)


@pytest.mark.parametrize(
    "raises, position",
    [
        ("train_loader", "epoch 1, iteration 3, data"),
        ("val_loader", "epoch 1, after iteration 4"),
        ("write", "after iteration 4"),
    ],
)
def test_an_error_outside_of_hooks_is_placed_too(tmp_path, raises, position):
    class Loader:
        def __iter__(self):
            yield from batches(2)
            raise OSError("broken")

    def write(checkpoint):
        raise OSError("broken")

    class Ask(BaseHook):
        def after_epoch(self, runner):
            runner.request_save(write=write)

    loaders = {"train_loader": batches(4), **({raises: Loader()} if raises != "write" else {})}
    runner = make_runner(
        tmp_path, *([EvalHook()] if raises == "val_loader" else []), Ask(), max_epochs=1, **loaders
    )
    with pytest.raises(OSError, match="broken") as caught:
        runner.train()
    assert make_locator(runner, own_stack().read)(caught.value).text == position


def test_a_run_that_copies_its_mirror_makes_progress(tmp_path):
    runner = make_runner(tmp_path / "run")
    remote = RemoteDirectory(f"file://{tmp_path}/store")
    remote.create("files/a", b"content")
    runner.checkpointer.mirror = Mirror(remote, runner.work_dir)
    locate = make_locator(runner, own_stack().read)
    before = locate(None)
    assert locate(None).progress == before.progress
    remote.download("files/a", lambda data: None)
    assert locate(None).progress != before.progress


def test_an_evaluation_alone_is_in_no_iteration(tmp_path):
    asking = Asking()
    make_runner(tmp_path, asking, test_loader=batches(1)).test()
    assert asking.answers["after_test_iter"] == "test, Asking at after_test_iter"


def test_what_happens_within_the_owner_of_the_step_is_within_the_iteration(tmp_path):
    class Owner(OptimizerHook):
        def optimize(self, runner):
            super().optimize(runner)
            self.answer = make_locator(runner, own_stack().read)(None).text

    owner = Owner()
    make_runner(tmp_path, owner, train_loader=batches(3), max_epochs=1).train()
    assert owner.answer == "epoch 1, iteration 3, Owner at optimize"
