"""OptimizerModeHook: schedule-free optimizers in the right mode at the right time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import load_checkpoint
from hookline.hooks import CheckpointHook, EMAHook, EvalHook, LambdaHook, StopAtHook
from tests.helpers import batches, small_model
from tests.optim.schedule_free import ScheduleFreeSGD

VAL = batches(2, seed=1)
EPOCHS = 3


def make(folder: Path, *hooks: Any, save: Any = None, **options: Any) -> Runner:
    model = small_model()
    return Runner(
        model,
        train_loader=batches(),
        val_loader=VAL,
        optimizer=ScheduleFreeSGD(model.parameters(), beta=0.7),
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
