"""Rows about EvalHook and DistEvalHook."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import Runner, make_loader
from hookline.engine import BaseHook, BaseRunner
from hookline.hooks import CheckpointHook, DistEvalHook, EvalHook
from tests.dist.processes import run_job
from tests.documents.runs import (
    Notes,
    Scores,
    bare,
    files,
    full,
    image_batches,
    log_rows,
    messages,
    new_folder,
    validated,
)
from tests.documents.table import REQUIREMENTS, Section
from tests.helpers import batches

evaluation = Section(REQUIREMENTS, "eval hook")
evaluation.defaults(
    EvalHook,
    {
        "interval": 1,
        "by_epoch": True,
        "start": 0,
        "save_best": True,
        "metric": "accuracy",
        "rule": "greater",
        "efficient_test": False,
        "test_fn": None,
    },
)


def validations(epochs: int = 4, **options: Any) -> list[tuple[int, int]]:
    """Return the counters at each validation, with epochs of three iterations."""
    notes = Notes()
    validated(EvalHook(**options), notes, epochs=epochs, train_loader=batches(3))
    return [call[1:] for call in notes.calls if call[0] == "before_val_epoch"]


def best_file(**options: Any) -> list[int]:
    """Return the epoch of the best file of a run with accuracies 0.1, 0.9 and 0.5, if there is one."""
    scores = Scores(accuracy=[0.1, 0.9, 0.5], other=[0.9, 0.1, 0.5])
    runner = validated(scores, EvalHook(**options), CheckpointHook())
    names = files(runner.work_dir, "best_*.pth")
    return [torch.load(runner.work_dir / name)["meta"]["epoch"] for name in names]


class Data:
    """A data set whose own method judges all predictions."""

    def __init__(self) -> None:
        self.batches = batches(2, seed=1)
        self.counts: list[int] = []

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        inputs, targets = self.batches[index // 8]
        return inputs[index % 8], targets[index % 8]

    def evaluate(self, results: Any, **more: Any) -> dict[str, float]:
        self.counts.append(len(results))
        return {"own": 0.5}


@evaluation.row("parameter", "`dataloader` is the data of the validation")
def _() -> None:
    seen = []

    class Look(BaseHook):
        def after_val_iter(self, runner: BaseRunner) -> None:
            seen.append(runner.batch)

    loader = batches(3, seed=5)
    bare(EvalHook(dataloader=loader), Look(), max_epochs=1)
    assert len(seen) == 3
    assert torch.equal(seen[0][0], loader[0][0])


@evaluation.row("parameter", "a run without any validation data does not validate")
def _() -> None:
    notes = Notes()
    bare(EvalHook(), notes, max_epochs=1)
    assert "before_val_epoch" not in [call[0] for call in notes.calls]


evaluation.add(
    "parameter",
    "`interval` counts the epochs between two validations",
    lambda: validations(interval=2) == [(1, 6), (3, 12)],
)
evaluation.add(
    "parameter",
    "`by_epoch` of false counts iterations",
    lambda: validations(2, interval=4, by_epoch=False) == [(1, 4)],
)
evaluation.add(
    "parameter",
    "`start` is the first epoch that is validated",
    lambda: validations(start=3) == [(2, 9), (3, 12)],
)
evaluation.add(
    "parameter",
    "`save_best` of false requests no best checkpoint",
    lambda: best_file(save_best=False) == [] and best_file() == [2],
)
evaluation.add(
    "parameter",
    "`metric` names the metric of the best checkpoint",
    lambda: best_file(metric="other", rule="greater") == [1],
)
evaluation.add(
    "parameter",
    "`rule` of less prefers small values",
    lambda: best_file(metric="other", rule="less") == [2] and best_file(rule="less") == [1],
)


@evaluation.row("parameter", "`efficient_test` keeps no predictions for the data set's own method")
def _() -> None:
    def kept(efficient: bool) -> list[int]:
        data = Data()
        loader = make_loader(data, batch_size=8)
        bare(EvalHook(dataloader=loader, efficient_test=efficient, save_best=False), max_epochs=1)
        return data.counts

    assert kept(False) == [2] or kept(False) == [16]
    assert kept(True) == []


@evaluation.row("parameter", "`test_fn` replaces the pass over the data")
def _() -> None:
    runner = validated(
        EvalHook(test_fn=lambda model, loader: {"own": float(len(list(loader)))}), epochs=1
    )
    assert runner.metrics["own"] == 2.0


@evaluation.row("behavior", "metrics are computed over the whole validation set")
def _() -> None:
    runner = full(max_epochs=1)
    runner.model.eval()
    hits = [runner.model(x).argmax(1) == y for x, y in image_batches(2, seed=1)]
    assert abs(runner.metrics["accuracy"] - torch.cat(hits).float().mean().item()) < 1e-6


@evaluation.row("behavior", "several data sets are validated, each with its own metrics")
def _() -> None:
    loaders = {"near": image_batches(2, seed=1), "far": image_batches(2, seed=2)}
    runner = full(EvalHook(dataloader=loaders), max_epochs=1)
    assert {"near/accuracy", "far/accuracy"} <= set(runner.metrics)


@evaluation.row("behavior", "results are logged")
def _() -> None:
    with messages() as found:
        runner = full(max_epochs=1)
    assert any(line.startswith("val") and "accuracy" in line for line in found)
    assert log_rows(runner, "val")[0]["accuracy"] == runner.metrics["accuracy"]


evaluation.add(
    "moment",
    "by epoch, the validation follows the training epoch",
    lambda: validations(1) == [(0, 3)],
)
evaluation.add(
    "moment",
    "by iteration, the validation follows the iteration",
    lambda: validations(1, interval=2, by_epoch=False) == [(0, 2)],
)


@evaluation.row("behavior", "a validation gives a mapping of metrics")
def _() -> None:
    runner = full(max_epochs=1)
    assert set(runner.metrics) == {"accuracy", "val_loss"}
    assert all(isinstance(value, float) for value in runner.metrics.values())


@evaluation.row("behavior", "a validation updates the best results of the runner")
def _() -> None:
    runner = validated(Scores(accuracy=[0.1, 0.9, 0.5]), EvalHook())
    assert runner.best["accuracy"]["value"] == 0.9
    assert runner.best["accuracy"]["epoch"] == 1


distributed = Section(REQUIREMENTS, "distributed runs")


def train_on_two(folder: Path) -> dict[str, Any]:
    """Train in one of two processes; a function of the module, for the other processes."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(24, 4, generator=generator)
    data = torch.utils.data.TensorDataset(inputs, (inputs[:, 0] > 0).long())
    seen: list[int] = []

    class Look(BaseHook):
        def after_val_iter(self, runner: BaseRunner) -> None:
            seen.append(len(runner.batch[0]))

    runner = Runner(
        model,
        train_loader=make_loader(data, batch_size=4, shuffle=True, seed=1),
        val_loader=make_loader(data, batch_size=4),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        max_epochs=2,
        work_dir=folder / "run",
        hooks=[
            CheckpointHook(interval=1, max_keep_ckpts=3),
            {"type": "LoggerHook", "interval": 2},
            DistEvalHook(interval=1),
            {"type": "EMAHook", "momentum": 0.9},
            Look(),
        ],
    )
    runner.train()
    average = runner.hook("EMAHook").average
    with torch.no_grad():
        average.swap_in()
        hits = (runner.model(inputs).argmax(1) == data.tensors[1]).float().mean()
        average.swap_out()
    return {
        "seen": sum(seen),
        "metrics": dict(runner.metrics),
        "accuracy": float(hits),
        "average": {key: value.clone() for key, value in average.state_dict().items()},
        "weights": {key: value.clone() for key, value in runner.model.state_dict().items()},
    }


@cache
def two() -> tuple[list[dict[str, Any]], Path]:
    folder = new_folder()
    return run_job(2, train_on_two, folder), folder


@distributed.row("class", "DistEvalHook is an EvalHook for several processes")
def _() -> None:
    assert issubclass(DistEvalHook, EvalHook)


@distributed.row("behavior", "each process validates its share of the data")
def _() -> None:
    assert [result["seen"] for result in two()[0]] == [24, 24]


@distributed.row("behavior", "results are aggregated: each process has those of the whole set")
def _() -> None:
    first, second = two()[0]
    assert first["metrics"] == second["metrics"]
    assert abs(first["metrics"]["accuracy"] - first["accuracy"]) < 1e-6


@distributed.row("behavior", "only the main process reports results")
def _() -> None:
    outputs = [(two()[1] / f"output_{rank}.txt").read_text() for rank in (0, 1)]
    assert "accuracy" in outputs[0]
    assert "accuracy" not in outputs[1]


@distributed.row("file", "only the main process saves checkpoints, each once")
def _() -> None:
    names = files(two()[1] / "run")
    assert names == ["best_accuracy.pth", "epoch_1.pth", "epoch_2.pth", "last.pth"]


@distributed.row("behavior", "only the main process writes the log, each report once")
def _() -> None:
    outputs = [(two()[1] / f"output_{rank}.txt").read_text() for rank in (0, 1)]
    assert "train  epoch" in outputs[0]
    assert "train  epoch" not in outputs[1]


@distributed.row("behavior", "the average is updated in step in all processes")
def _() -> None:
    first, second = two()[0]
    for key, value in first["average"].items():
        assert torch.equal(value, second["average"][key])
        assert not torch.equal(value, first["weights"][key])
