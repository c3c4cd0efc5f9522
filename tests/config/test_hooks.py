from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import hookline
from hookline.config import load_config
from hookline.config.hooks import checked_hooks
from hookline.errors import ConfigError, Problem
from tests.problems import fields, raises_problem

START = "work_dir: {folder}/run\ndevice: cpu\nmodel: {{type: cnn, width: 2}}\ndataset: digits\ntraining: {{iters: 1}}\nhooks:\n"


def written(folder: Path, hooks: str, rest: str = "") -> Path:
    """A config whose hooks begin on line 7."""
    path = folder / "config.yaml"
    path.write_text(START.format(folder=folder) + hooks + rest)
    return path


def problems(folder: Path, hooks: str, rest: str = "") -> list[Problem]:
    """Return the problems of a config with these hooks."""
    with pytest.raises(ConfigError) as error:
        checked_hooks(load_config(written(folder, hooks, rest)))
    return error.value.problems


@pytest.mark.parametrize(
    ("hook", "parameter"),
    [
        ("EarlyStoppingHook", "monitor: val_los"),
        ("CheckpointHook", "save_best: [accuracy, val_los]"),
        ("EvalHook", "metric: val_los"),
    ],
)
def test_a_metric_that_is_not_measured_is_reported_at_the_line_that_names_it(
    tmp_path: Path, hook: str, parameter: str
) -> None:
    config = written(
        tmp_path, f"  - IterTimerHook\n  - type: {hook}\n    priority: 55\n    {parameter}\n"
    )
    with raises_problem(
        component=hook,
        path=("hooks", 1, parameter.partition(":")[0]),
        nearest="val_loss",
        file=str(config),
        line=10,
    ):
        hookline.Runner.from_config(config).train()


def test_a_named_hook_that_fails_when_training_begins_is_reported_with_name_and_class(
    tmp_path: Path,
) -> None:
    config = written(tmp_path, "  patient:\n    type: EarlyStoppingHook\n    monitor: val_los\n")
    with raises_problem(component="patient (EarlyStoppingHook)", parameter="monitor", line=9):
        hookline.Runner.from_config(config).train()


def test_of_two_hooks_of_a_class_the_one_that_failed_is_reported(tmp_path: Path) -> None:
    hook = "  - {{type: EarlyStoppingHook, monitor: {}}}\n"
    config = written(tmp_path, hook.format("val_loss") + hook.format("val_los"))
    with raises_problem(path=("hooks", 1, "monitor"), line=8):
        hookline.Runner.from_config(config).train()


def test_a_schedule_that_does_not_fit_the_run_is_reported_at_its_section(tmp_path: Path) -> None:
    schedule = "lr_config:\n  policy: CosineRestart\n  by_epoch: false\n  min_lr: 0\n  restart_weights: [1]\n  periods: [0.5]\n"
    config = written(tmp_path, "  - IterTimerHook\n", schedule.replace("0.5", "1"))
    with raises_problem(component="CosineRestartLrUpdaterHook", file=str(config)) as error:
        hookline.Runner.from_config(config, ["training.iters=9"]).train()
    assert error.value.path[0] == "lr_config"


def test_an_error_of_a_users_hook_gets_a_location(tmp_path: Path) -> None:
    config = written(
        tmp_path, "  - type: tests.config.my_parts.Choosy\n    size: 3\n    color: red\n"
    )
    with raises_problem(
        component="Choosy", path=("hooks", 0), parameter="color", file=str(config), line=7
    ) as error:
        hookline.Runner.from_config(config).train()
    assert isinstance(error.value.__cause__, ConfigError)
    with pytest.raises(ZeroDivisionError):  # A bug in the hook is not a config error.
        hookline.Runner.from_config(
            config, ["hooks.choosy.color=blue", "hooks.choosy.size=0"]
        ).train()
    assert hookline.Runner.from_config(config, ["hooks.choosy.color=blue"]).train().iter == 1


def test_errors_of_constructors_are_reported_with_all_other_problems(tmp_path: Path) -> None:
    hooks = "  - 3\n  - type: EMAHook\n    momentum: 1.5\n  - {type: LoggerHook, intervall: 1}\n  - {type: LoggerHook, interval: 0}\n"
    rest = "lr_config: {policy: stepp}\nmomentum_config: {policy: OneCycle, pct_start: 2}\nscheduler: {type: StepLRR}\n"
    found = problems(tmp_path, hooks, rest)
    assert [problem.line for problem in found] == [7, 9, 10, 11, 12, 13, 14]
    assert fields(found[3], "component", "parameter", "value") == {
        "component": "LoggerHook",
        "parameter": "interval",
        "value": 0,
    }
    assert found[5].component == "OneCycleMomentumUpdaterHook"
    assert problems(tmp_path, "", rest)[1] == replace(found[5], line=8)


def test_an_error_of_a_constructor_without_fields_is_reported_at_the_hook(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "  - type: tests.config.my_parts.Picky\n    size: 3\n")
    assert fields(found, "component", "path", "line") == {
        "component": "Picky",
        "path": ("hooks", 0),
        "line": 7,
    }


def test_hooks_are_built_after_seeding(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "  - tests.config.my_parts.Drawing\n"), ["seed=4"])
    torch.manual_seed(9)
    (first,), (again,) = (checked_hooks(config).values() for _ in range(2))
    assert first.drawn == again.drawn  # type: ignore[attr-defined]


def test_two_hooks_cannot_save_into_one_directory(tmp_path: Path) -> None:
    (conflict,) = problems(
        tmp_path, f"  - CheckpointHook\n  - {{type: CheckpointHook, out_dir: {tmp_path}/run/}}\n"
    )
    assert fields(conflict, "component", "path", "line") == {
        "component": "CheckpointHook",
        "path": ("hooks", 1),
        "line": 8,
    }
    assert f"{tmp_path}/run" in conflict.message
    apart = written(
        tmp_path, f"  - CheckpointHook\n  - {{type: CheckpointHook, out_dir: {tmp_path}/other}}\n"
    )
    assert hookline.Runner.from_config(apart).train().iter == 1


def test_a_name_that_is_the_class_of_another_hook_is_reported(tmp_path: Path) -> None:
    (default,) = problems(tmp_path, "  - type: EMAHook\n    name: OptimizerHook\n")
    assert (default.path, default.line) == (("hooks", 0, "name"), 8)
    (given,) = problems(tmp_path, "  - EMAHook\n  - {type: LoggerHook, name: EMAHook}\n")
    assert (given.path, given.line) == (("hooks", 1, "name"), 8)
    replaced = written(
        tmp_path,
        "  OptimizerHook: {type: AmpOptimizerHook}\n  log: {type: LoggerHook, name: LoggerHook}\n",
    )
    assert [hook.name for hook in checked_hooks(load_config(replaced)).values()] == [
        "OptimizerHook",
        "LoggerHook",
    ]
