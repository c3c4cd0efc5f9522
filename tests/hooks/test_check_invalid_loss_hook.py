"""A loss that is none ends the run, with ours and with the hooks of both documents."""

from __future__ import annotations

import math
import textwrap

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.engine import HOOKS, BaseHook
from hookline.errors import InvalidLoss
from hookline.hooks import AmpOptimizerHook, CheckInvalidLossHook, build_hook
from tests.helpers import batches, make_runner, small_model
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
    assert "iteration 4 " in str(error.value)
    assert runner.iter == 4  # The epoch ends here.


def test_one_bad_loss_between_two_checks_is_found(tmp_path):
    class SpoilOnce(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 1:
                runner.outputs["loss"] = runner.outputs["loss"] * math.nan

    hooks = [SpoilOnce(priority="LOWEST"), CheckInvalidLossHook(interval=3)]
    runner = make_runner(tmp_path, *hooks)
    with raises_problem(InvalidLoss) as error:
        runner.train()
    assert "iteration 2 " in str(error.value)
    assert runner.iter + 1 == 3


def test_a_finite_loss_raises_nothing(tmp_path):
    make_runner(tmp_path, CheckInvalidLossHook(interval=1)).train()


def train_by_default(folder, *hooks, **parts):
    model = small_model()
    runner = Runner(
        model, train_loader=batches(), optimizer=torch.optim.SGD(model.parameters(), lr=0.1), loss_fn=nn.CrossEntropyLoss(),
        max_epochs=3, work_dir=folder, hooks=hooks, **parts,
    )  # fmt: skip
    runner.train()
    return runner


def test_a_run_stops_by_default_and_names_the_iteration_and_the_good_checkpoint(tmp_path):
    with raises_problem(InvalidLoss, component="CheckInvalidLossHook") as error:
        train_by_default(tmp_path, Spoil(6))
    assert "iteration 6 " in str(error.value)
    assert str(tmp_path / "epoch_1.pth") in error.value.problems[0].suggestion.advice


def test_a_run_may_ignore_invalid_losses(tmp_path):
    runner = train_by_default(tmp_path, Spoil(6), drop_hooks=["CheckInvalidLossHook"])
    assert runner.iter == 12


def test_rolling_back_replaces_the_default(tmp_path):
    class SpoilOnce(BaseHook):
        spoiled = False

        def after_forward(self, runner):
            if runner.iter == 6 and not self.spoiled:
                self.spoiled = True
                runner.outputs["loss"] = runner.outputs["loss"] * math.nan

    runner = train_by_default(tmp_path, SpoilOnce(), {"type": "RollbackHook"})
    assert len(runner.hook("RollbackHook").history) == 1


@pytest.mark.parametrize("last", [False, True])
def test_an_infinite_loss_whose_step_was_skipped_is_accepted_before_the_end(tmp_path, last):
    class Overflow(BaseHook):
        def after_forward(self, runner):
            if runner.iter == (7 if last else 3):
                runner.outputs["loss"] = runner.outputs["loss"] * math.inf

    hooks = [AmpOptimizerHook(dtype="float16"), Overflow(), CheckInvalidLossHook(interval=1)]
    runner = make_runner(tmp_path, *hooks)
    if last:
        with raises_problem(InvalidLoss):
            runner.train()
    else:
        runner.train()
    assert runner.optimizer_steps == 7


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
