"""Rows about the modules, the builder, priorities and dependencies."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import torch

import hookline
from hookline import hooks
from hookline.engine import BaseRunner, Priority, get_priority
from hookline.hooks import builder
from tests.documents.runs import Notes, bare, files
from tests.documents.table import REQUIREMENTS, Section
from tests.problems import raises_problem

MODULES = {
    "builder": ["build_hook", "build_hooks", "get_default_hooks"],
    "base_hook": ["BaseHook"],
    "checkpoint_hook": ["CheckpointHook"],
    "logger_hook": ["LoggerHook", "TensorBoardHook", "WandbHook", "MLflowHook"],
    "eval_hook": ["EvalHook", "DistEvalHook"],
    "early_stopping_hook": ["EarlyStoppingHook"],
    "ema_hook": ["EMAHook"],
    "profiler_hook": ["ProfilerHook", "MemoryProfilerHook", "IterTimerHook"],
    "visualization_hook": ["VisualizationHook", "DetVisualizationHook", "SegVisualizationHook"],
}
PRIORITIES = {
    "HIGHEST": 0,
    "VERY_HIGH": 10,
    "HIGH": 30,
    "ABOVE_NORMAL": 40,
    "NORMAL": 50,
    "BELOW_NORMAL": 60,
    "LOW": 70,
    "VERY_LOW": 90,
    "LOWEST": 100,
}
OF_HOOKS = {
    "EMAHook": "ABOVE_NORMAL",
    "LoggerHook": "NORMAL",
    "CheckpointHook": "BELOW_NORMAL",
    "EvalHook": "LOW",
    "EarlyStoppingHook": "VERY_LOW",
}

modules = Section(REQUIREMENTS, "modules")
modules.add("file", "`hooks/__init__.py` is the package", lambda: Path(hooks.__file__).is_file())


def has_names(module: str, names: list[str]) -> None:
    found = importlib.import_module(f"hookline.hooks.{module}")
    assert Path(found.__file__).name == f"{module}.py"
    for name in names:
        assert callable(getattr(found, name)), name


for _module, _names in MODULES.items():
    modules.add(
        "file",
        f"`hooks/{_module}.py` has {', '.join(_names)}",
        lambda module=_module, names=_names: has_names(module, names),
    )

exports = Section(REQUIREMENTS, "exports")
for _name in ("build_hook", "build_hooks", "BaseHook", "HOOKS"):
    exports.add(
        "class" if _name[0].isupper() else "function",
        f"`hookline.hooks` exports {_name}",
        lambda name=_name: getattr(hooks, name) is getattr(hookline, name),
    )
for _module, _names in MODULES.items():
    for _name in _names:
        if _name.endswith("Hook") and _name != "BaseHook":
            exports.add(
                "class",
                f"{_name} is exported and registered under its name",
                lambda name=_name: (
                    getattr(hooks, name) is hooks.HOOKS.get(name)
                    and issubclass(getattr(hooks, name), hooks.BaseHook)
                ),
            )

building = Section(REQUIREMENTS, "builder")


@building.row("function", "`build_hook(config)` makes one hook, with the parameters of the config")
def _() -> None:
    hook = builder.build_hook({"type": "EMAHook", "momentum": 0.5})
    assert type(hook) is hooks.EMAHook
    assert hook.momentum == 0.5


@building.row("function", "`build_hooks(configs)` makes a list of hooks sorted by priority")
def _() -> None:
    configs = [{"type": "EvalHook"}, {"type": "EMAHook"}, {"type": "LoggerHook", "priority": 5}]
    names = [type(hook).__name__ for hook in builder.build_hooks(configs)]
    assert names == ["LoggerHook", "EMAHook", "EvalHook"]


@building.row("function", "`get_default_hooks()` makes the default hooks, sorted by priority")
def _() -> None:
    found = builder.get_default_hooks()
    values = [get_priority(hook.priority) for hook in found]
    assert values == sorted(values)
    assert {"LoggerHook", "CheckpointHook", "EvalHook"} <= {type(hook).__name__ for hook in found}


@building.row("behavior", "a config that names no hook or parameter is refused, with its index")
def _() -> None:
    wrong = [
        ({"type": "EMAHok"}, "EMAHook", ("type",)),
        ({"type": "EMAHook", "momentun": 1}, "momentum", ("momentun",)),
    ]
    for config, nearest, place in wrong:
        with raises_problem(nearest=nearest, path=(1, *place)):
            builder.build_hooks([{"type": "EvalHook"}, config])


@building.row("behavior", "hooks with one priority keep the order of their configs")
def _() -> None:
    configs = [{"type": "LoggerHook", "name": name} for name in ("b", "a", "c")]
    assert [hook.name for hook in builder.build_hooks(configs)] == ["b", "a", "c"]


for _name, _value in PRIORITIES.items():
    building.add(
        "default",
        f"the priority {_name} is {_value}",
        lambda name=_name, value=_value: (
            get_priority(name) == value
            and get_priority(getattr(builder, name)) == value
            and Priority[name] == value
        ),
    )
building.add(
    "default",
    "a hook has the priority NORMAL",
    lambda: get_priority(Notes().priority) == Priority.NORMAL,
)
for _name, _priority in OF_HOOKS.items():
    building.add(
        "default",
        f"{_name} has the priority {_priority}",
        lambda name=_name, priority=_priority: (
            get_priority(hooks.HOOKS.get(name).priority) == Priority[priority]
        ),
    )

dependencies = Section(REQUIREMENTS, "dependencies")


@dependencies.row("behavior", "the runner registers hooks and hands itself to them")
def _() -> None:
    notes = Notes()
    runner = bare(notes, max_epochs=1)
    assert notes in runner.hooks
    assert notes.runner is runner
    assert notes.calls[0][0] == "before_run"


@dependencies.row("behavior", "the training engine calls hooks and imports none of them")
def _() -> None:
    for path in Path(inspect.getfile(BaseRunner)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("hookline.hooks"), path.name


@dependencies.row("behavior", "hooks are registered in a Registry and built from it")
def _() -> None:
    assert isinstance(hooks.HOOKS, hookline.registry.Registry)

    @hooks.HOOKS.register("OfTheTable")
    class OfTheTable(hooks.BaseHook):
        pass

    try:
        assert type(builder.build_hook("OfTheTable")) is OfTheTable
    finally:
        hooks.HOOKS._classes.pop("OfTheTable")


@dependencies.row("behavior", "hooks log with the package's logger, which is a service")
def _() -> None:
    notes = Notes()
    runner = bare(notes, max_epochs=1)
    assert notes.get_service("logger") is runner.logger
    assert runner.logger.name == "hookline"


@dependencies.row("behavior", "checkpoints are written by the store of checkpoints")
def _() -> None:
    runner = bare(hooks.CheckpointHook())
    stored = {name for entry in runner.checkpointer.store.entries() for name in entry.names}
    assert stored == set(files(runner.work_dir))


@dependencies.row("behavior", "profiles are made by torch.profiler")
def _() -> None:
    seen = []
    schedule = {"wait": 0, "warmup": 1, "active": 1, "repeat": 1}
    bare(hooks.ProfilerHook(profile_iters=3, schedule=schedule, on_trace_ready=seen.append))
    assert [type(profiler) for profiler in seen] == [torch.profiler.profile]
