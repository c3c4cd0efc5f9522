"""Rows about LoggerHook, TensorBoardHook and what is logged."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch

from hookline import BaseHook, Runner
from hookline.engine import BaseRunner
from hookline.hooks import LoggerHook, TensorBoardHook
from tests.documents.runs import full, image_batches, log_rows, messages, new_folder
from tests.documents.table import REQUIREMENTS, Section

logs = Section(REQUIREMENTS, "logger hook")
logs.defaults(
    LoggerHook,
    {"interval": 50, "by_epoch": True, "log_metric_by_epoch": True, "ignore_last": True},
)


@cache
def logged(**options: Any) -> tuple[Runner, list[str]]:
    """Return a run of two epochs of seven iterations and its messages."""
    with messages() as found:
        runner = full(LoggerHook(**{"interval": 3, **options}), train_loader=image_batches(7))
    return runner, found


def reports(**options: Any) -> list[int]:
    return [row["iter"] for row in log_rows(logged(**options)[0]) if "loss" in row]


logs.add(
    "parameter",
    "`interval` counts the iterations between two reports",
    lambda: reports() == [3, 6, 10, 13],
)
logs.add(
    "parameter",
    "`by_epoch` of true counts iterations within the epoch, of false within the run",
    lambda: reports(by_epoch=False) == [3, 6, 9, 12],
)
logs.add(
    "parameter",
    "`ignore_last` of false also reports the incomplete interval at the end of an epoch",
    lambda: reports(ignore_last=False) == [3, 6, 7, 10, 13, 14],
)
logs.add(
    "parameter",
    "`ignore_last` of false also reports the incomplete interval at the end of the run",
    lambda: reports(ignore_last=False, by_epoch=False) == [3, 6, 9, 12, 14],
)


@logs.row("parameter", "`log_metric_by_epoch` makes the epoch or the iteration the x of metrics")
def _() -> None:
    by_epoch = [row.get("step", row["iter"]) for row in log_rows(logged()[0], "val")]
    runner = logged(log_metric_by_epoch=False)[0]
    by_iter = [row.get("step", row["iter"]) for row in log_rows(runner, "val")]
    assert (by_epoch, by_iter) == ([1, 2], [7, 14])


@logs.row("behavior", "training metrics are recorded: the loss as the mean of its interval")
def _() -> None:
    losses = []

    class Losses(BaseHook):
        def after_train_iter(self, runner: BaseRunner) -> None:
            losses.append(float(runner.outputs["loss"].detach()))

    runner = full(LoggerHook(interval=3), Losses())
    found = [row["loss"] for row in log_rows(runner) if "loss" in row]
    expected = [sum(losses[start : start + 3]) / 3 for start in range(0, 12, 3)]
    assert all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(found, expected, strict=True))


@logs.row("behavior", "reports go to several places: the console and a file of rows")
def _() -> None:
    runner, found = logged()
    assert len([line for line in found if line.startswith("train")]) == 4
    assert len(log_rows(runner)) >= 4


@logs.row("behavior", "a line on the console is formatted: epoch, position and values with names")
def _() -> None:
    line = [line for line in logged()[1] if line.startswith("train")][1]
    for word in ("epoch 1/2", "6/7", "loss ", "lr 0.1", "time ", "eta "):
        assert word in line, word


@logs.row("behavior", "the learning rate is recorded")
def _() -> None:
    assert [row["lr"] for row in log_rows(logged()[0]) if "lr" in row] == [0.1] * 4


@logs.row("moment", "`before_run` opens the outputs")
def _() -> None:
    seen = []

    class Look(BaseHook):
        priority = 55  # after LoggerHook

        def before_run(self, runner: BaseRunner) -> None:
            seen.append((runner.work_dir / "log.jsonl").exists())

    full(Look(), max_epochs=1)
    assert seen == [True]


def sizes(site: str) -> list[int]:
    """Return the number of rows in the log at a site, read by the outermost hook."""
    counts = []

    class Count(BaseHook):
        priority = 0  # last in after_*
        reports = True  # also among the hooks that report

    def count(self: BaseHook, runner: BaseRunner) -> None:
        counts.append(len((runner.work_dir / "log.jsonl").read_text().splitlines()))

    setattr(Count, site, count)
    full(LoggerHook(interval=2), Count(), max_epochs=1)
    return counts


logs.add(
    "moment",
    "`after_train_iter` records training metrics",
    lambda: sizes("after_train_iter") == [0, 1, 1, 2, 2, 3],
)
logs.add(
    "moment",
    "the end of a validation records its metrics",
    lambda: sizes("after_epoch") == [4] and "accuracy" in log_rows(logged()[0], "val")[0],
)


@logs.row("moment", "the end of a run closes the outputs")
def _() -> None:
    runner = logged()[0]
    assert runner.events.listeners == []
    assert not runner.logger.handlers or all(
        str(runner.work_dir) not in str(getattr(handler, "baseFilename", ""))
        for handler in runner.logger.handlers
    )


board = Section(REQUIREMENTS, "tensorboard hook")
board.defaults(
    TensorBoardHook,
    {
        "log_dir": None,
        "interval": 50,
        "log_graph": False,
        "log_images": False,
        "image_interval": 1000,
    },
)


class Pictures(BaseHook):
    """Records one of each kind."""

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.iter == 0:
            runner.events.put_image("prediction", torch.rand(8, 8))
            runner.events.put_histogram("weights/first", runner.model[0].weight.detach())
            runner.events.put_text("note", "a note")


@cache
def events(**options: Any) -> Any:
    """Return what TensorBoard reads of a run of two epochs of six iterations."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = new_folder() / "events"
    hook = TensorBoardHook(**{"interval": 4, "log_dir": str(folder), **options})
    full(hook, Pictures(), {"type": "HistogramHook", "interval": 6}, config={"kept": "as text"})
    sizes = {"scalars": 0, "images": 0, "histograms": 0, "tensors": 0, "graph": 1}
    return EventAccumulator(str(folder), sizes).Reload()


def steps(tag: str, kind: str = "Scalars", **options: Any) -> list[int]:
    return [event.step for event in getattr(events(**options), kind)(tag)]


@board.row(
    "parameter", "`log_dir` is the directory of the event files; by default in the work directory"
)
def _() -> None:
    assert events().Tags()["scalars"]
    runner = full(TensorBoardHook(), max_epochs=1)
    assert list((runner.work_dir / "tensorboard").glob("events.out.tfevents.*"))


board.add(
    "parameter",
    "`interval` counts the iterations between two reports",
    lambda: steps("train/loss") == [4, 8, 12],
)


@board.row("parameter", "`log_graph` writes the graph of the model")
def _() -> None:
    assert events(log_graph=True).Tags()["graph"]
    assert not events().Tags()["graph"]


@board.row("parameter", "`log_images` writes images of the training data")
def _() -> None:
    assert "train/inputs" in events(log_images=True, image_interval=5).Tags()["images"]
    assert "train/inputs" not in events().Tags()["images"]


board.add(
    "parameter",
    "`image_interval` counts the iterations between two images",
    lambda: steps("train/inputs", "Images", log_images=True, image_interval=5) == [5, 10],
)


@board.row("behavior", "scalars are logged: the loss, the accuracy and the learning rate")
def _() -> None:
    assert {"train/loss", "val/accuracy", "train/lr"} <= set(events().Tags()["scalars"])


@board.row("behavior", "images are logged at the step where they were recorded")
def _() -> None:
    assert steps("prediction", "Images") == [1]


@board.row("behavior", "pictures of predictions and feature maps that hooks draw are logged")
def _() -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = new_folder() / "events"
    full(
        TensorBoardHook(log_dir=str(folder)),
        {"type": "VisualizationHook", "interval": 3, "backend": "pillow"},
        {"type": "FeatureMapHook", "frequency": 3},
        max_epochs=1,
    )
    tags = set(EventAccumulator(str(folder), {"images": 0}).Reload().Tags()["images"])
    assert {"VisualizationHook/train", "FeatureMapHook/0"} <= tags


@board.row("behavior", "histograms are logged: weights and gradients")
def _() -> None:
    tags = set(events().Tags()["histograms"])
    assert {"weights/first", "weights/0/weight", "gradients/0/weight"} <= tags


@board.row("behavior", "text is logged: the config and a summary of the model")
def _() -> None:
    tensors = events()
    texts = {
        tag: tensors.Tensors(tag)[0].tensor_proto.string_val[0].decode()
        for tag in tensors.Tags()["tensors"]
    }
    assert any("as text" in text for text in texts.values())
    assert any("Conv2d" in text for tag, text in texts.items() if "model" in tag)
    assert any("a note" in text for text in texts.values())


@board.row("behavior", "checkpoint files are logged on request")
def _() -> None:
    found = events(log_model=True)
    names = " ".join(found.Tags()["tensors"])
    assert "checkpoints/last.pth" in names
    assert "best_accuracy" in names
