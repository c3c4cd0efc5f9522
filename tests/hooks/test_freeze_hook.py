"""FreezeHook: parameters that are not trained in some epochs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hookline.errors import ConfigError
from hookline.hooks import FreezeHook, LambdaHook
from tests.helpers import make_runner, small_model


def changed_epochs(folder: Path, hook: FreezeHook, epochs: int = 4) -> list[int]:
    """Return the epochs in which the first layer changes."""
    model = small_model()
    before = [model[0].weight.detach().clone()]
    changed: list[int] = []

    def compare(epoch: int) -> None:
        if not torch.equal(before[-1], model[0].weight):
            changed.append(epoch)
        before.append(model[0].weight.detach().clone())

    note = LambdaHook(after_train_epoch=compare)
    make_runner(folder, hook, note, model=model, max_epochs=epochs).train()
    return changed


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        (FreezeHook("0.*", end=2), [2, 3]),
        (FreezeHook("0", begin=1, end=3), [0, 3]),
        (FreezeHook(["0"], begin=2), [0, 1]),
    ],
)
def test_parameters_are_frozen_from_one_epoch_until_another(
    hook: FreezeHook, expected: list[int], tmp_path: Path
) -> None:
    assert changed_epochs(tmp_path, hook) == expected


def test_frozen_parameters_need_no_gradient(tmp_path: Path) -> None:
    model = small_model()
    make_runner(tmp_path, FreezeHook("0"), model=model).train()
    assert [each.requires_grad for each in model.parameters()] == [False, False, True, True]


def test_a_pattern_that_fits_nothing_is_an_error_before_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        make_runner(tmp_path, FreezeHook("heat")).train()


def test_an_end_before_the_begin_is_an_error() -> None:
    with pytest.raises(ConfigError):
        FreezeHook("0", begin=2, end=2)


def test_a_pattern_that_fits_nothing_is_an_error_of_the_hook(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        make_runner(tmp_path, FreezeHook(params="haed")).train()
    assert (caught.value.component, caught.value.parameter) == ("FreezeHook", "params")
