from __future__ import annotations

from pathlib import Path

import pytest
import torch

import hookline
from hookline.config import load_config
from hookline.config.hooks import checked_hooks
from hookline.errors import ConfigError

START = "work_dir: {folder}/run\ndevice: cpu\nmodel: {{type: cnn, width: 2}}\ndataset: digits\ntraining: {{iters: 1}}\nhooks:\n"


def written(folder: Path, hooks: str, rest: str = "") -> Path:
    """A config whose hooks begin on line 7."""
    path = folder / "config.yaml"
    path.write_text(START.format(folder=folder) + hooks + rest)
    return path


def refused(folder: Path, hooks: str, rest: str = "") -> list[str]:
    """What is wrong with the hooks, without the folder."""
    with pytest.raises(ConfigError) as error:
        checked_hooks(load_config(written(folder, hooks, rest)))
    return [str(problem).removeprefix(f"{folder}/") for problem in error.value.problems]


@pytest.mark.parametrize(
    ("hook", "parameter"),
    [("EarlyStoppingHook", "monitor: val_los"), ("CheckpointHook", "save_best: [accuracy, val_los]"), ("EvalHook", "metric: val_los")],
)
def test_a_metric_that_is_not_measured_is_told_at_the_line_that_names_it(tmp_path: Path, hook: str, parameter: str) -> None:
    config = written(tmp_path, f"  - IterTimerHook\n  - type: {hook}\n    priority: 55\n    {parameter}\n")
    with pytest.raises(ConfigError) as error:
        hookline.Runner.from_config(config).train()
    assert str(error.value) == (
        f"{config}:10: hooks[1] {hook}: no metric 'val_los' is measured; there is accuracy, val_loss; did you mean 'val_loss'?"
    )


def test_a_mistake_that_a_named_hook_finds_when_training_begins_is_told_with_both_names(tmp_path: Path) -> None:
    config = written(tmp_path, "  patient:\n    type: EarlyStoppingHook\n    monitor: val_los\n")
    with pytest.raises(ConfigError) as error:
        hookline.Runner.from_config(config).train()
    assert f"{config}:9: hooks[0] patient (EarlyStoppingHook): no metric 'val_los' is measured" in str(error.value)


def test_a_schedule_that_does_not_fit_the_run_is_told_at_its_parameter(tmp_path: Path) -> None:
    schedule = "lr_config:\n  policy: CosineRestart\n  by_epoch: false\n  min_lr: 0\n  restart_weights: [1]\n  periods: [0.5]\n"
    config = written(tmp_path, "  - IterTimerHook\n", schedule.replace("0.5", "1"))
    with pytest.raises(ConfigError) as error:
        hookline.Runner.from_config(config, ["training.iters=9"]).train()
    assert str(error.value).startswith(f"{config}:13: lr_config CosineRestartLrUpdaterHook: the periods end after 1")


def test_a_hook_of_the_users_own_needs_to_know_nothing_of_places(tmp_path: Path) -> None:
    config = written(tmp_path, "  - type: tests.config.my_parts.Choosy\n    size: 3\n    colour: red\n")
    with pytest.raises(ConfigError) as error:
        hookline.Runner.from_config(config).train()
    assert str(error.value) == f"{config}:9: hooks[0] Choosy: there is no colour like that"
    with pytest.raises(ZeroDivisionError):  # a fault of the code is none of the config
        hookline.Runner.from_config(config, ["hooks.choosy.colour=blue", "hooks.choosy.size=0"]).train()
    assert hookline.Runner.from_config(config, ["hooks.choosy.colour=blue"]).train().iter == 1


def test_what_constructors_refuse_is_told_beside_all_other_mistakes(tmp_path: Path) -> None:
    hooks = "  - 3\n  - type: EMAHook\n    momentum: 1.5\n  - {type: LoggerHook, intervall: 1}\n  - {type: LoggerHook, interval: 0}\n"
    rest = "lr_config: {policy: stepp}\nmomentum_config: {policy: OneCycle, pct_start: 2}\nscheduler: {type: StepLRR}\n"
    problems = refused(tmp_path, hooks, rest)
    assert [problem.partition(" ")[0] for problem in problems] == [f"config.yaml:{line}:" for line in (7, 9, 10, 11, 12, 13, 14)]
    assert "LoggerHook: interval must be at least 1, got 0" in problems[3]
    assert "pct_start must lie between 0 and 1" in problems[5]
    assert refused(tmp_path, "", rest)[1] == problems[5].replace(":13:", ":8:")


def test_a_message_that_could_mean_several_parameters_is_told_at_the_hook(tmp_path: Path) -> None:
    (both,) = refused(tmp_path, "  - type: EarlyStoppingHook\n    patience: 1\n    min_delta: -1\n")
    assert both.startswith("config.yaml:7: hooks[0] EarlyStoppingHook: patience and min_delta must not be negative")


def test_hooks_are_built_after_seeding(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "  - tests.config.my_parts.Drawing\n"), ["seed=4"])
    torch.manual_seed(9)
    (first,), (again,) = (checked_hooks(config).values() for _ in range(2))
    assert first.drawn == again.drawn  # type: ignore[attr-defined]


def test_two_hooks_cannot_save_into_one_directory(tmp_path: Path) -> None:
    (rivals,) = refused(tmp_path, f"  - CheckpointHook\n  - {{type: CheckpointHook, out_dir: {tmp_path}/run/}}\n")
    assert rivals == (
        f"config.yaml:8: hooks[1] CheckpointHook: this and hooks[0] CheckpointHook (line 7) both save into {tmp_path}/run, and only one "
        f"hook can: leave one of them out, or give it an out_dir of its own"
    )
    apart = written(tmp_path, f"  - CheckpointHook\n  - {{type: CheckpointHook, out_dir: {tmp_path}/other}}\n")
    assert hookline.Runner.from_config(apart).train().iter == 1


def test_a_name_that_another_hook_has_by_its_class_is_told(tmp_path: Path) -> None:
    (default,) = refused(tmp_path, "  - type: EMAHook\n    name: OptimizerHook\n")
    assert default == "config.yaml:8: hooks[0].name: the name 'OptimizerHook' is that of a default hook already"
    (given,) = refused(tmp_path, "  - EMAHook\n  - {type: LoggerHook, name: EMAHook}\n")
    assert given == "config.yaml:8: hooks[1].name: the name 'EMAHook' is that of hooks[0] already"
    replaced = written(tmp_path, "  OptimizerHook: {type: AmpOptimizerHook}\n  log: {type: LoggerHook, name: LoggerHook}\n")
    assert [hook.name for hook in checked_hooks(load_config(replaced)).values()] == ["OptimizerHook", "LoggerHook"]
