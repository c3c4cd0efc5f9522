"""Rows about the trainer, hook points and services of the guide."""

from __future__ import annotations

import contextlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline.compat.dl_framework.hooks import BaseHook
from hookline.compat.dl_framework.hooks.registry import HookRegistry
from hookline.compat.dl_framework.trainers import BaseTrainer
from hookline.compat.dl_framework.utils import load_config
from hookline.engine import HOOKS
from tests.documents.runs import log_rows, messages, new_folder
from tests.documents.table import GUIDE, Section

POINTS = {
    "before_training": 1,
    "before_epoch": 2,
    "before_step": 8,
    "after_step": 8,
    "after_epoch": 2,
    "after_training": 1,
    "cleanup": 1,
}


def settings(**more: Any) -> dict[str, Any]:
    """Return a config of two epochs of four steps."""
    return {
        "experiment_dir": str(new_folder() / "experiment"),
        "model": {"type": "cnn", "width": 2},
        "dataset": {"type": "digits"},
        "loader": {"batch_size": 400},
        "training": {"epochs": 2},
        **more,
    }


def train(*hooks: Any, **more: Any) -> BaseTrainer:
    trainer = BaseTrainer(settings(**more))
    for hook in hooks:
        trainer.register_hook(hook)
    trainer.train()
    return trainer


class Points(BaseHook):
    """Notes the hook points and what they are given."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self.calls: list[tuple[str, Any]] = []

    def before_training(self, model: nn.Module) -> None:
        self.calls.append(("before_training", isinstance(model, nn.Module)))

    def before_epoch(self, epoch: int, model: nn.Module) -> None:
        self.calls.append(("before_epoch", epoch))

    def before_step(self, step: int, batch: Any) -> None:
        self.calls.append(("before_step", step))

    def after_step(self, step: int, loss: torch.Tensor) -> None:
        self.calls.append(("after_step", step))

    def after_epoch(self, epoch: int, model: nn.Module, metrics: dict[str, float]) -> None:
        self.calls.append(("after_epoch", (epoch, dict(metrics))))

    def after_training(self) -> None:
        self.calls.append(("after_training", None))

    def cleanup(self) -> None:
        self.calls.append(("cleanup", None))


@cache
def points() -> Points:
    hook = Points()
    train(hook)
    return hook


def given(point: str) -> list[Any]:
    return [value for name, value in points().calls if name == point]


hook_points = Section(GUIDE, "hook points")
for _point, _count in POINTS.items():
    hook_points.add(
        "moment",
        f"`{_point}` is called {_count} times in two epochs of four steps",
        lambda point=_point, count=_count: len(given(point)) == count,
    )


@hook_points.row("moment", "the hook points come in their order")
def _() -> None:
    names = [name for name, _ in points().calls]
    step = ["before_step", "after_step"]
    epoch = ["before_epoch", *step * 4, "after_epoch"]
    assert names == ["before_training", *epoch * 2, "after_training", "cleanup"]


hook_points.add(
    "parameter", "`before_training` gets the model", lambda: given("before_training") == [True]
)
hook_points.add(
    "parameter", "`before_epoch` gets the epoch, from 0", lambda: given("before_epoch") == [0, 1]
)
hook_points.add(
    "parameter",
    "`after_epoch` gets the epoch, the model and the metrics of the epoch",
    lambda: (
        [epoch for epoch, _ in given("after_epoch")] == [0, 1]
        and {"accuracy", "val_loss", "train_loss"} <= set(given("after_epoch")[0][1])
    ),
)
hook_points.add(
    "parameter", "steps are counted from 0", lambda: given("after_step") == list(range(8))
)


@hook_points.row("moment", "`cleanup` is also called after an error")
def _() -> None:
    class Fails(Points):
        def after_step(self, step: int) -> None:
            raise RuntimeError("broken")

    hook = Fails()
    with contextlib.suppress(RuntimeError):
        train(hook)
    assert ("cleanup", None) in hook.calls
    assert ("after_training", None) not in hook.calls


trainer = Section(GUIDE, "trainer and config")


@cache
def from_file() -> BaseTrainer:
    path = new_folder() / "config.yaml"
    config = settings(
        hooks=[
            {"type": "TimeTrackingHook", "name": "training_timer", "frequency": 1},
            {"type": "SystemMonitorHook", "name": "system_monitor", "frequency": 10},
        ]
    )
    path.write_text(json.dumps(config), encoding="utf-8")
    built = BaseTrainer(load_config(str(path)))
    built.train()
    return built


@trainer.row("function", "`load_config` reads a file")
def _() -> None:
    path = new_folder() / "config.yaml"
    path.write_text("experiment_dir: here\ntraining: {epochs: 50}\n", encoding="utf-8")
    config = load_config(str(path))
    assert config["training"]["epochs"] == 50
    assert "here" in (config.get("experiment_dir"), config.get("work_dir"))


trainer.add(
    "class",
    "`BaseTrainer(config)` builds the hooks of the config",
    lambda: (
        type(from_file().hook("training_timer")).__name__ == "TimeTrackingHook"
        and type(from_file().hook("system_monitor")).__name__ == "SystemMonitorHook"
    ),
)
trainer.add("function", "`train()` trains to the end", lambda: from_file().epoch == 2)
trainer.add(
    "parameter",
    "`experiment_dir` is the directory of the results",
    lambda: (
        from_file().work_dir.name == "experiment" and (from_file().work_dir / "last.pth").exists()
    ),
)
trainer.add(
    "parameter",
    "`model.type` names the model",
    lambda: any(isinstance(layer, nn.Conv2d) for layer in from_file().model.modules()),
)
trainer.add(
    "parameter",
    "`model.type` of cnn and `dataset.type` of cifar10 are known names",
    lambda: (
        "cnn" in __import__("hookline.models", fromlist=["MODELS"]).MODELS
        and "cifar10" in __import__("hookline.data", fromlist=["DATASETS"]).DATASETS
    ),
)
trainer.add(
    "parameter",
    "`dataset.type` names the data",
    lambda: len(from_file().train_loader.dataset) > 1000,
)
trainer.add("parameter", "`training.epochs` is the length", lambda: from_file().max_epochs == 2)
trainer.add(
    "parameter",
    "`name` of a hook is its name in the trainer",
    lambda: from_file().hook("training_timer").name == "training_timer",
)


@trainer.row("function", "`register_hook(hook)` adds a hook made in code")
def _() -> None:
    assert len(points().calls) > 0


custom = Section(GUIDE, "custom hooks")


@cache
def custom_run() -> tuple[BaseTrainer, list[str], Any]:
    known = dict(HOOKS.items())

    @HookRegistry.register("OfTheGuide")
    class OfTheGuide(BaseHook):
        def __init__(self, config: dict[str, Any] | None = None) -> None:
            super().__init__(config)
            self.seen = 0

        def before_training(self, model: nn.Module) -> None:
            logger = self.get_service("logger")
            if logger:
                logger.info("about to begin")

        def after_epoch(self, epoch: int, model: nn.Module, metrics: dict[str, float]) -> None:
            visualizer = self.get_service("visualizer")
            if visualizer:
                visualizer.add_scalar("custom/metric", 0.5, epoch)
            self.seen += 1

    try:
        with messages() as found:
            built = train(hooks=[{"type": "OfTheGuide", "name": "mine", "extra": 3}])
    finally:
        HOOKS._classes.clear()
        HOOKS._classes.update(known)
    return built, found, OfTheGuide


custom.add(
    "class",
    "`HookRegistry.register(name)` makes a class known to configs",
    lambda: type(custom_run()[0].hook("mine")) is custom_run()[2],
)
custom.add(
    "class",
    "the config of a hook is given to its constructor and kept",
    lambda: custom_run()[0].hook("mine").config["extra"] == 3,
)
custom.add(
    "behavior",
    "only the methods that the hook has are called",
    lambda: (
        custom_run()[0].hook("mine").seen == 2
        and set(custom_run()[2]().get_triggered_stages()) == {"before_train", "after_epoch"}
    ),
)
custom.add("behavior", "the service `logger` logs", lambda: "about to begin" in custom_run()[1])


@custom.row("behavior", "`visualizer.add_scalar(name, value, step)` writes the value at its step")
def _() -> None:
    rows = [row for row in log_rows(custom_run()[0]) if "custom/metric" in row]
    assert [(row["step"], row["custom/metric"]) for row in rows] == [(0, 0.5), (1, 0.5)]


services = Section(GUIDE, "services")
EXPECTED = {
    "trainer": lambda found, trainer: found is trainer,
    "config": lambda found, trainer: found["training"] == {"epochs": 2},
    "model": lambda found, trainer: found is trainer.model,
    "train_loader": lambda found, trainer: found is trainer.train_loader,
    "val_loader": lambda found, trainer: found is trainer.val_loader,
    "optimizer": lambda found, trainer: isinstance(found, torch.optim.Optimizer),
    "scheduler": lambda found, trainer: found is trainer.scheduler,
    "device": lambda found, trainer: isinstance(found, torch.device),
    "logger": lambda found, trainer: found.name == "hookline",
    "experiment_dir": lambda found, trainer: found == trainer.work_dir and found.is_dir(),
    "checkpoints_dir": lambda found, trainer: (Path(found) / "last.pth").is_file(),
    "logs_dir": lambda found, trainer: (Path(found) / "log.jsonl").is_file(),
    "visualization_dir": lambda found, trainer: Path(found).is_dir(),
    "visualizer": lambda found, trainer: callable(found.add_scalar) and callable(found.add_image),
}


@cache
def asked() -> tuple[dict[str, Any], BaseTrainer]:
    seen: dict[str, Any] = {}

    class Ask(BaseHook):
        def before_training(self) -> None:
            for name in (*EXPECTED, "absent", "own"):
                seen[name] = self.get_service(name)

    built = BaseTrainer(settings())
    built.register_service("own", "an object")
    built.register_hook(Ask())
    built.train()
    return seen, built


for _name, _check in EXPECTED.items():
    services.add(
        "behavior",
        f"the service `{_name}` is there",
        lambda name=_name, check=_check: check(asked()[0][name], asked()[1]),
    )
services.add(
    "function",
    "`get_service` of an unknown name gives None",
    lambda: asked()[0]["absent"] is None,
)
services.add(
    "function",
    "`register_service(name, object)` gives hooks an object",
    lambda: asked()[0]["own"] == "an object",
)


@services.row("behavior", "a registered MLflow module can log the metrics of each epoch")
def _() -> None:
    logged = []

    class Tracker:
        def log_metric(self, name: str, value: float, step: int) -> None:
            logged.append((name, value, step))

    class Logs(BaseHook):
        def after_epoch(self, epoch: int, model: nn.Module, metrics: dict[str, float]) -> None:
            tracker = self.get_service("mlflow")
            if tracker:
                for name, value in metrics.items():
                    tracker.log_metric(name, value, step=epoch)

    built = BaseTrainer(settings())
    built.register_service("mlflow", Tracker())
    built.register_hook(Logs())
    built.train()
    assert {step for _, _, step in logged} == {0, 1}
    assert {"accuracy", "val_loss", "train_loss"} == {name for name, _, _ in logged}
