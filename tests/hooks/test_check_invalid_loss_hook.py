"""A loss that is none ends the run, with ours and with the hooks of both documents."""

from __future__ import annotations

import math
import textwrap

import pytest

from hookline.engine import HOOKS, BaseHook
from hookline.errors import InvalidLoss
from hookline.hooks import CheckInvalidLossHook, build_hook
from tests.helpers import make_runner
from tests.problems import logged, raises_problem

MMCV = '''
import torch
from hookline import HOOKS, Hook

@HOOKS.register_module()
class CheckInvalidLossHook(Hook):
    """Check invalid loss hook."""

    def __init__(self, interval=50):
        self.interval = interval

    def after_train_iter(self, runner):
        if self.every_n_iters(runner, self.interval):
            assert torch.isfinite(runner.outputs['loss']), \\
                runner.logger.info('loss become infinite or NaN!')
'''

MMENGINE = MMCV.replace("self, runner):", "self, runner, batch_idx, data_batch=None, outputs=None):").replace(
    "every_n_iters", "every_n_train_iters"
).replace("runner.outputs", "outputs")  # fmt: skip


class Spoil(BaseHook):
    def __init__(self, at: int, factor: float = math.nan) -> None:
        self.at, self.factor = at, factor

    def after_forward(self, runner):
        if runner.iter + 1 >= self.at:
            runner.outputs["loss"] = runner.outputs["loss"] * self.factor


@pytest.mark.parametrize("factor", [math.nan, math.inf])
def test_an_invalid_loss_is_found_at_the_next_check(tmp_path, factor):
    runner = make_runner(tmp_path, Spoil(4, factor), CheckInvalidLossHook(interval=3), max_epochs=3)
    with raises_problem(InvalidLoss, component="CheckInvalidLossHook") as error:
        runner.train()
    assert not math.isfinite(error.value.value)
    assert runner.iter + 1 == 6


def test_a_finite_loss_raises_nothing(tmp_path):
    make_runner(tmp_path, CheckInvalidLossHook(interval=1)).train()


def test_an_interval_must_be_at_least_one():
    with raises_problem(component="CheckInvalidLossHook", parameter="interval", value=0):
        build_hook({"type": "CheckInvalidLossHook", "interval": 0})


@pytest.mark.parametrize("code", [MMCV, MMENGINE], ids=["mmcv", "mmengine"])
def test_the_documents_own_hooks_take_the_place_of_the_built_in_one(tmp_path, code, caplog):
    namespace = {"__name__": "my_project.hooks"}
    try:
        exec(textwrap.dedent(code), namespace)  # noqa: S102
        assert HOOKS.get("CheckInvalidLossHook") is namespace["CheckInvalidLossHook"]
        assert logged(caplog, "CheckInvalidLossHook", "my_project.hooks")
        runner = make_runner(
            tmp_path,
            Spoil(3),
            {"type": "CheckInvalidLossHook", "interval": 2, "priority": "ABOVE_NORMAL"},
        )
        with pytest.raises(AssertionError):
            runner.train()
        assert runner.iter + 1 == 4
    finally:
        HOOKS.register("CheckInvalidLossHook", force=True)(CheckInvalidLossHook)
