"""Rows about the built-in hooks of the guide and their frequency."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from PIL import Image

from hookline.compat.dl_framework.hooks import (
    BaseHook,
    FeatureMapHook,
    SystemMonitorHook,
    TimeTrackingHook,
)
from hookline.compat.dl_framework.trainers import BaseTrainer
from tests.documents.rows.guide import train
from tests.documents.runs import log_rows
from tests.documents.table import GUIDE, Section

built_in = Section(GUIDE, "built-in hooks")


@cache
def trained() -> BaseTrainer:
    """Train with the hooks of the example config, in steps that fit a short run."""
    return train(
        hooks=[
            {
                "type": "TimeTrackingHook",
                "name": "training_timer",
                "frequency": 1,
                "log_to_file": True,
                "log_path": "time_tracking.log",
            },
            {
                "type": "FeatureMapHook",
                "name": "feature_visualizer",
                "frequency": 3,
                "max_features": 16,
                "sample_batch_idx": 0,
            },
            {
                "type": "SystemMonitorHook",
                "name": "system_monitor",
                "frequency": 4,
                "interval": 0.01,
                "track_cpu": True,
                "track_memory": True,
                "track_gpu": True,
                "track_gpu_memory": True,
            },
            {"type": "GradientFlowHook", "name": "gradients", "frequency": 4},
        ]
    )


@cache
def changed() -> BaseTrainer:
    """Train with other values of the parameters."""
    return train(
        TimeTrackingHook({"name": "timer", "frequency": 2, "log_to_file": False}),
        FeatureMapHook({"name": "maps", "frequency": 5, "max_features": 1}),
        SystemMonitorHook(
            {"name": "monitor", "frequency": 2, "interval": 0.01, "track_cpu": False}
        ),
        SystemMonitorHook(
            {"name": "second", "frequency": 2, "interval": 0.01, "track_memory": False}
        ),
    )


def lines() -> list[str]:
    return (trained().work_dir / "time_tracking.log").read_text().splitlines()


def pictures(trainer: BaseTrainer, hook: str) -> set[str]:
    folder = trainer.work_dir / "visualizations" / hook
    return {path.name for path in folder.rglob("step_*.png")}


built_in.add(
    "class",
    "TimeTrackingHook logs the time of epochs and predicts the end",
    lambda: "took" in lines()[0] and "to go" in lines()[0],
)
built_in.add(
    "parameter",
    "`frequency` of TimeTrackingHook counts epochs",
    lambda: len([line for line in lines() if "epoch" in line]) == 2,
)
built_in.add(
    "parameter",
    "`log_to_file` of false writes no file",
    lambda: not list(changed().work_dir.glob("*time*.log")),
)


@built_in.row("parameter", "`log_path` is the file, relative to the experiment")
def _() -> None:
    hook = TimeTrackingHook({"frequency": 1, "log_to_file": True, "log_path": "custom.log"})
    assert "took" in (train(hook).work_dir / "custom.log").read_text()


built_in.add(
    "class",
    "FeatureMapHook draws the feature maps of a CNN",
    lambda: len(pictures(trained(), "feature_visualizer")) > 0,
)
built_in.add(
    "parameter",
    "`frequency` of FeatureMapHook counts steps, from 0",
    lambda: (
        pictures(trained(), "feature_visualizer")
        == {"step_000000.png", "step_000003.png", "step_000006.png"}
        and pictures(changed(), "maps") == {"step_000000.png", "step_000005.png"}
    ),
)


@built_in.row("parameter", "`max_features` limits the channels in a picture")
def _() -> None:
    def area(trainer: BaseTrainer, hook: str) -> int:
        folder = trainer.work_dir / "visualizations" / hook
        sizes = [Image.open(path).size for path in folder.rglob("step_000000.png")]
        return sum(width * height for width, height in sizes)

    assert area(changed(), "maps") < area(trained(), "feature_visualizer")


@built_in.row("parameter", "`sample_batch_idx` chooses the sample")
def _() -> None:
    other = train(FeatureMapHook({"name": "maps", "frequency": 100, "sample_batch_idx": 3}))
    first = {
        path.parent.name: path.read_bytes()
        for path in (trained().work_dir / "visualizations").rglob("step_000000.png")
        if "feature_visualizer" in str(path)
    }
    second = {
        path.parent.name: path.read_bytes()
        for path in (other.work_dir / "visualizations" / "maps").rglob("step_000000.png")
    }
    assert first.keys() == second.keys()
    assert first != second


built_in.add(
    "class",
    "GradientFlowHook draws the gradients of the layers",
    lambda: "step_000000.png" in pictures(trained(), "gradients"),
)


def recorded(trainer: BaseTrainer, word: str) -> list[int]:
    return [row["iter"] for row in log_rows(trainer) if any(word in name for name in row)]


built_in.add(
    "class",
    "SystemMonitorHook records the use of CPU and memory",
    lambda: bool(recorded(trained(), "system/cpu")) and bool(recorded(trained(), "system/memory")),
)


@built_in.row("parameter", "`frequency` of SystemMonitorHook counts steps")
def _() -> None:
    assert len(recorded(trained(), "system/cpu")) <= 2
    assert len(recorded(changed(), "system/memory")) >= len(recorded(trained(), "system/memory"))


@built_in.row("parameter", "`interval` is the time between two samples, in seconds")
def _() -> None:
    assert trained().hook("system_monitor").interval == 0.01
    assert trained().hook("system_monitor").samples_taken >= 1


def own_names(**off: bool) -> set[str]:
    hook = SystemMonitorHook({"frequency": 1, "interval": 0.01, **off})
    trainer = train(hook)
    return {name for row in log_rows(trainer) for name in row if name.startswith("system/")}


@built_in.row("parameter", "`track_cpu` of false records no CPU use")
def _() -> None:
    assert not any("cpu" in name for name in own_names(track_cpu=False))


@built_in.row("parameter", "`track_memory` of false records no memory use")
def _() -> None:
    names = own_names(track_memory=False)
    assert any("cpu" in name for name in names)
    assert not any("memory_percent" in name or "rss" in name for name in names)


for _name in ("track_gpu", "track_gpu_memory"):
    built_in.add(
        "parameter",
        f"`{_name}` needs no GPU: without one the rest is recorded",
        lambda name=_name: (
            getattr(trained().hook("system_monitor"), name) is True
            and bool(recorded(trained(), "system/cpu"))
        ),
    )

frequency = Section(GUIDE, "frequency")


class Steps(BaseHook):
    """Notes the steps at which it is called."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self.steps: list[int] = []

    def after_step(self, step: int) -> None:
        self.steps.append(step)


def called(hook: Steps) -> list[int]:
    train(hook)
    return hook.steps


frequency.add(
    "parameter",
    "`frequency` calls a hook in every n-th step",
    lambda: called(Steps({"frequency": 5})) == [0, 5],
)
frequency.add(
    "default", "a hook is called in every step", lambda: called(Steps()) == list(range(8))
)


@frequency.row("function", "`should_trigger(step)` can be overridden")
def _() -> None:
    class Some(Steps):
        def should_trigger(self, step: int) -> bool:
            return step < 3 or step % 4 == 0

    assert called(Some()) == [0, 1, 2, 4]


practice = Section(GUIDE, "good practice")


@practice.row("behavior", "a missing service is None and can be tested before it is used")
def _() -> None:
    assert Steps().get_service("logger") is None


@practice.row("behavior", "a hook that is called rarely leaves the training as it is")
def _() -> None:
    weights = [
        torch.cat([value.flatten() for value in train(*hooks, seed=3).model.parameters()])
        for hooks in ([], [Steps({"frequency": 5})])
    ]
    assert torch.equal(*weights)


@practice.row("behavior", "resources of a hook are released in `cleanup`, also without training")
def _() -> None:
    released = []

    class Holds(BaseHook):
        def cleanup(self) -> None:
            released.append(True)

    trainer = BaseTrainer(dict(train().config))
    trainer.register_hook(Holds())
    trainer.validate()
    assert released == [True]
