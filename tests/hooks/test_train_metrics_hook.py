"""TrainMetricsHook: metrics of the training batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import Runner, make_loader
from hookline.engine import BaseHook
from hookline.errors import ConfigError, HooklineError
from hookline.hooks import StopAtHook, TrainMetricsHook
from tests.helpers import batches, make_runner, small_model
from tests.problems import raises_problem


def confidence(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return predictions.softmax(1).amax(1)


class CorrectPredictions(BaseHook):
    """Counts correct predictions and samples of each epoch."""

    def __init__(self) -> None:
        self.epochs: list[list[int]] = []

    def before_train_epoch(self) -> None:
        self.epochs.append([0, 0])

    def after_train_iter(self, outputs: dict[str, Any]) -> None:
        correct = outputs["predictions"].argmax(1) == outputs["targets"]
        self.epochs[-1][0] += int(correct.sum())
        self.epochs[-1][1] += len(correct)


def recorded(runner: Any, name: str = "train/accuracy") -> list[tuple[int, float]]:
    return [(each.iter, each.value) for each in runner.events.history(name)]


def test_the_accuracy_of_each_epoch_counts_every_sample_once(tmp_path: Path) -> None:
    counted = CorrectPredictions()
    loader = [*batches(3), *batches(1, size=5, seed=1)]
    runner = make_runner(tmp_path, TrainMetricsHook(), counted, train_loader=loader).train()
    values = [value for _, value in recorded(runner)]
    assert values == [correct / count for correct, count in counted.epochs]
    assert [count for _, count in counted.epochs] == [29, 29]


def test_an_interval_records_the_mean_over_its_iterations(tmp_path: Path) -> None:
    hook = TrainMetricsHook(metrics={"sure": confidence}, interval=3)
    runner = make_runner(tmp_path, hook, train_loader=batches(4), max_epochs=2).train()
    each = TrainMetricsHook(metrics={"sure": confidence}, interval=1)
    every = make_runner(tmp_path, each, train_loader=batches(4), max_epochs=2).train()
    singles = [value for _, value in recorded(every, "train/sure")]
    assert [value for _, value in recorded(runner, "train/sure")] == pytest.approx(
        [sum(singles[:3]) / 3, sum(singles[3:6]) / 3]
    )


def train(folder: Path, *hooks: BaseHook, resume: str | None = None) -> Runner:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(50, 6, generator=generator)
    data = torch.utils.data.TensorDataset(inputs, torch.randint(3, (50,), generator=generator))
    model = small_model()
    runner = Runner(
        model,
        train_loader=make_loader(data, batch_size=8, shuffle=True),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[TrainMetricsHook(metrics={"accuracy": "accuracy", "sure": confidence}), *hooks],
        max_epochs=3,
        work_dir=folder,
        seed=0,
        resume=resume,
    )
    return runner.train()


@pytest.mark.parametrize("stop", [3, 7, 10])
def test_a_resumed_run_records_the_same_numbers_in_the_log(tmp_path: Path, stop: int) -> None:
    straight = train(tmp_path / "straight").history.curves()
    train(tmp_path / "cut", StopAtHook(iter=stop))
    resumed = train(tmp_path / "cut", resume="auto").history.curves()
    for name in ("train/accuracy", "train/sure"):
        assert len(straight[name]) == 3
        assert resumed[name] == straight[name]


def test_it_leaves_the_training_unchanged(tmp_path: Path) -> None:
    weights = []
    for hooks in ([], [TrainMetricsHook(metrics=["accuracy", "top2"])]):
        runner = make_runner(tmp_path, *hooks).train()
        weights.append(torch.cat([each.flatten() for each in runner.model.parameters()]))
    assert torch.equal(*weights)


def test_a_metric_that_is_not_a_mean_over_samples_is_refused() -> None:
    with raises_problem(component="TrainMetricsHook", parameter="metrics", value="f1"):
        TrainMetricsHook(metrics=["accuracy", "f1"])
    with pytest.raises(ConfigError):
        TrainMetricsHook(metrics=["acuracy"])
    with raises_problem(component="TrainMetricsHook", parameter="interval"):
        TrainMetricsHook(interval=0)


def test_a_step_without_predictions_is_an_error_that_names_the_hook(tmp_path: Path) -> None:
    class OwnStep(nn.Linear):
        def train_step(self, batch: Any) -> dict[str, Any]:
            return {"loss": self(batch[0]).square().mean()}

    with pytest.raises(HooklineError, match="TrainMetricsHook"):
        make_runner(tmp_path, TrainMetricsHook(), model=OwnStep(6, 3)).train()


def test_the_shapes_are_in_a_note_to_the_error_of_a_metric(tmp_path: Path) -> None:
    hook = TrainMetricsHook(metrics=["mae"])
    with pytest.raises(ConfigError) as caught:
        make_runner(tmp_path, hook).train()
    assert "'mae'" in "".join(caught.value.__notes__)
