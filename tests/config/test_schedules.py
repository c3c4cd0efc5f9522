"""Schedules in a config: checked with the rest of it, and turned into hooks."""

from __future__ import annotations

import pytest

from hookline import ConfigError, Runner, load_config
from hookline.cli.plan import plan
from hookline.config import build, validate
from hookline.config.schedules import hook_configs
from hookline.hooks import CosineAnnealingLrUpdaterHook, OneCycleMomentumUpdaterHook, ParamSchedulerHook

MINIMAL = {
    "model": "mlp",
    "dataset": "digits",
    "training": {"epochs": 2},
    "device": "cpu",
    "optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9},
}


def problems(**more) -> list[str]:
    return [str(problem) for problem in validate({**MINIMAL, **more})]


@pytest.mark.parametrize("policy", ["CosineAnnealing", "cosineannealing", "cosine_annealing"])
def test_a_policy_becomes_the_hook_of_its_name(policy):
    config = load_config({**MINIMAL, "lr_config": {"policy": policy, "min_lr": 0.01, "warmup": "linear", "warmup_iters": 3},
                          "momentum_config": {"policy": "OneCycle"}})  # fmt: skip
    hooks = build(config)["hooks"]
    assert hooks == [CosineAnnealingLrUpdaterHook(min_lr=0.01, warmup="linear", warmup_iters=3), OneCycleMomentumUpdaterHook()]


@pytest.mark.parametrize("policy", ["fixed", "step", "exp", "poly", "Inv", "CosineAnnealing", "FlatCosineAnnealing", "CosineRestart",
                                    "cyclic", "OneCycle", "LinearAnnealing"])  # fmt: skip
def test_the_documented_names_of_policies_are_known(policy):
    assert not any("unknown policy" in problem for problem in problems(lr_config={"policy": policy}))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"lr_config": {"policy": "cosin_annealing", "min_lr": 0.0}}, "policy 'cosin_annealing'; did you mean 'CosineAnnealing'?"),
        ({"lr_config": {"polcy": "step", "step": 3}}, "did you mean 'policy'?"),
        ({"lr_config": {"step": 3}}, "missing 'policy'; known: CosineAnnealing, CosineRestart"),
        ({"lr_config": {"policy": "step", "steps": 3}}, "unknown parameter 'steps'; did you mean 'step'?"),
        ({"lr_config": {"policy": "step", "step": "x"}}, "'step' must be a whole number or a list"),
        ({"momentum_config": {"policy": "poly"}}, "unknown policy 'poly'"),
        ({"scheduler": {"type": "StepLR"}}, "missing 'step_size'"),
        ({"scheduler": {"type": "CosineAnealingLR", "T_max": 3}}, "did you mean 'CosineAnnealingLR'?"),
        ({"scheduler": [{"type": "StepLR", "step_size": 3, "by_epoch": "no"}]}, "scheduler[0].by_epoch: must be true or false"),
        ({"scheduler": 3}, "scheduler: must be"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_place(config, message):
    assert any(message in problem for problem in problems(**config))


def test_values_that_make_no_schedule_are_told_with_their_place():
    with pytest.raises(ConfigError, match="lr_config CosineAnnealingLrUpdaterHook: give exactly one of min_lr and min_lr_ratio"):
        build({**MINIMAL, "lr_config": {"policy": "CosineAnnealing"}})


def test_a_scheduler_is_built_for_the_optimizer_and_stepped(tmp_path):
    config = {
        **MINIMAL,
        "work_dir": str(tmp_path),
        "scheduler": [
            {"type": "StepLR", "step_size": 1, "gamma": 0.5, "by_epoch": False},
            {"type": "ReduceLROnPlateau", "monitor": "accuracy", "mode": "max"},
        ],
    }
    runner = Runner.from_config(load_config(config))
    assert [type(scheduler).__name__ for scheduler in runner.scheduler] == ["StepLR", "ReduceLROnPlateau"]
    assert runner.scheduler[0].optimizer is runner.optimizer
    assert (runner.scheduler[0].by_epoch, runner.scheduler[1].monitor) == (False, "accuracy")
    assert [type(hook) for hook in runner.hooks].count(ParamSchedulerHook) == 1


def test_an_own_hook_for_the_scheduler_takes_the_place_of_the_one_that_would_be_added():
    config = {**MINIMAL, "scheduler": "ConstantLR", "hooks": [{"type": "ParamSchedulerHook", "by_epoch": False}]}
    assert [hook["type"] for _, hook in hook_configs(config)] == ["ParamSchedulerHook"]
    assert [hook["type"] for _, hook in hook_configs({**config, "hooks": [{"type": "LRSchedulerHook"}]})] == ["LRSchedulerHook"]


def test_the_plan_shows_the_hooks_of_schedules_and_where_they_come_from(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "model: mlp\ndataset: digits\ntraining: {epochs: 1}\nlr_config: {policy: step, step: 2, priority: 20}\n", encoding="utf-8"
    )
    _, planned = plan(load_config(path))
    assert (planned[-1].hook.name, planned[-1].origin, planned[-1].priority_from) == ("StepLrUpdaterHook", f"{path}:4", "config")


def test_another_policy_replaces_that_of_a_base_with_its_parameters(tmp_path):
    (tmp_path / "base.yaml").write_text("lr_config: {policy: step, step: 2}\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text("base: base.yaml\nlr_config: {policy: exp, gamma: 0.9}\n", encoding="utf-8")
    assert load_config(tmp_path / "config.yaml")["lr_config"] == {"policy": "exp", "gamma": 0.9}
