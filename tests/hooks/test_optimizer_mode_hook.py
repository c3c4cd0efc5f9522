"""OptimizerModeHook: schedule-free optimizers in the right mode at the right time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import load_checkpoint
from hookline.engine import BaseHook
from hookline.hooks import (
    CheckpointHook,
    EMAHook,
    EvalHook,
    LambdaHook,
    RollbackHook,
    StopAtHook,
)
from tests.helpers import batches, small_model
from tests.optim.schedule_free import ScheduleFreeSGD

VAL = batches(2, seed=1)
EPOCHS = 3


def make(
    folder: Path,
    *hooks: Any,
    save: Any = None,
    kind: type[ScheduleFreeSGD] = ScheduleFreeSGD,
    **options: Any,
) -> Runner:
    model = small_model()
    return Runner(
        model,
        train_loader=batches(),
        val_loader=VAL,
        optimizer=kind(model.parameters(), beta=0.7),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=EPOCHS,
        work_dir=folder,
        hooks=[save or CheckpointHook(save_best=False), EvalHook(), *hooks],
        **options,
    )


def by_hand() -> tuple[nn.Module, list[float]]:
    """Train and validate as the documentation of schedule-free optimizers says."""
    model = small_model()
    optimizer = ScheduleFreeSGD(model.parameters(), beta=0.7)
    losses = []
    for _ in range(EPOCHS):
        optimizer.train()
        for inputs, targets in batches():
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
            optimizer.zero_grad()
        optimizer.eval()
        with torch.no_grad():
            values = [nn.functional.cross_entropy(model(x), y).item() for x, y in VAL]
        losses.append(sum(values) / len(values))
    return model, losses


def equal(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_losses_and_weights_are_those_of_the_loop_by_hand(tmp_path: Path) -> None:
    losses: list[float] = []
    note = LambdaHook(after_val=lambda metrics: losses.append(metrics["val_loss"]))
    runner = make(tmp_path, note).train()
    model, expected = by_hand()
    assert losses == pytest.approx(expected, rel=1e-6)
    assert equal(runner.model, model)


def test_a_checkpoint_has_the_weights_for_evaluation_and_saving_changes_nothing(
    tmp_path: Path,
) -> None:
    save = CheckpointHook(by_epoch=False, interval=1, save_best=False)
    often = make(tmp_path, save=save).train()
    model, _ = by_hand()
    assert equal(often.model, model)
    saved = load_checkpoint(tmp_path / "last.pth")["state_dict"]
    assert all(torch.equal(saved[name], value) for name, value in model.state_dict().items())


def test_a_resumed_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    make(tmp_path, StopAtHook(iter=6)).train()
    resumed = make(tmp_path, resume="auto").train()
    assert equal(resumed.model, by_hand()[0])
    assert resumed.iter == 12


@pytest.mark.parametrize("cut", [7, 25])
def test_a_run_that_stopped_inside_an_epoch_continues_bit_by_bit(tmp_path: Path, cut: int) -> None:
    class StopOnce(BaseHook):
        stopped = False

        def after_train_iter(self, runner: Any) -> None:
            if runner.iter + 1 == cut and not self.stopped:
                self.stopped = True
                runner.request_stop("enough for now")

    def start(folder: Path, *hooks: Any) -> Runner:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 3))
        return Runner(
            model,
            train_loader=batches(20, features=32),
            optimizer=ScheduleFreeSGD(model.parameters(), beta=0.7),
            loss_fn=nn.CrossEntropyLoss(),
            max_epochs=2,
            work_dir=folder,
            hooks=hooks,
        )

    runner = start(tmp_path / "parts", StopOnce()).train()
    assert runner.iter == cut
    assert equal(runner.train().model, start(tmp_path / "whole").train().model)


def test_weights_that_are_loaded_between_two_trainings_are_used(tmp_path: Path) -> None:
    seen: dict[int, torch.Tensor] = {}

    class Keep(BaseHook):
        def before_train_iter(self, runner: Any) -> None:
            seen.setdefault(runner.iter, runner.model[0].weight.detach().clone())

        def after_train_iter(self, runner: Any) -> None:
            if runner.iter + 1 == 6:
                seen[-1] = runner.model[0].weight.detach().clone()
                runner.request_stop("enough for now")

    runner = make(tmp_path, Keep()).train()
    weights = {name: torch.zeros_like(each) for name, each in runner.model.state_dict().items()}
    runner.checkpointer.load_weights({"state_dict": weights})
    runner.train()
    assert seen[6].norm() < 0.5 * seen[-1].norm()


class ModeOutside(ScheduleFreeSGD):
    """Keeps its mode out of its state, as the wrapper of the package `schedulefree` does."""

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        for group in state["param_groups"]:
            del group["train_mode"]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        modes = [group["train_mode"] for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, mode in zip(self.param_groups, modes, strict=True):
            group["train_mode"] = mode


@pytest.mark.parametrize("cut", [3, 4, 6])
def test_a_resumed_optimizer_gets_a_mode_that_is_not_in_its_state(tmp_path: Path, cut: int) -> None:
    kind = ModeOutside
    make(tmp_path, StopAtHook(iter=cut), kind=kind).train()
    resumed = make(tmp_path, kind=kind, resume="auto").train()
    assert equal(resumed.model, by_hand()[0])


@pytest.mark.parametrize("interval", [3, 4])  # inside an epoch, and after a validation
def test_a_rollback_restores_a_mode_that_is_not_in_the_state(tmp_path: Path, interval: int) -> None:
    class Spoil(BaseHook):
        done = False

        def after_forward(self, runner: Any) -> None:
            if runner.iter == 6 and not self.done:
                self.done = True
                runner.outputs = {**runner.outputs, "loss": runner.outputs["loss"] * math.nan}

    def roll_back(kind: type[ScheduleFreeSGD]) -> nn.Module:
        save = CheckpointHook(by_epoch=False, interval=interval, save_best=False)
        hooks = [Spoil(), RollbackHook(skip_batches=1)]
        runner = make(tmp_path / kind.__name__, *hooks, save=save, kind=kind).train()
        assert len(hooks[1].history) == 1
        return runner.model

    assert equal(roll_back(ModeOutside), roll_back(ScheduleFreeSGD))


def test_ema_averages_the_weights_for_evaluation_and_does_not_change_training(
    tmp_path: Path,
) -> None:
    ema = EMAHook(momentum=0.0, warm_up=0)
    runner = make(tmp_path, ema).train()
    assert equal(runner.model, by_hand()[0])
    for average, weight in zip(ema.average.average, runner.model.parameters(), strict=True):
        assert torch.allclose(average, weight, atol=1e-6)


def test_weights_that_are_loaded_for_a_test_are_those_of_the_validation(tmp_path: Path) -> None:
    trained = make(tmp_path / "a").train()
    other = make(tmp_path / "b", load_from=str(tmp_path / "a" / "last.pth"))
    assert other.validate()["val_loss"] == trained.metrics["val_loss"]
