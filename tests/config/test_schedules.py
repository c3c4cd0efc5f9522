"""Schedules in a config, and the hooks that they add."""

from __future__ import annotations

import pytest

from hookline import ConfigError, Runner, load_config
from hookline.cli.plan import plan
from hookline.config import build, validate
from hookline.config.schedules import hook_configs
from hookline.errors import Problem
from hookline.hooks import (
    CheckpointHook,
    CosineAnnealingLrUpdaterHook,
    OneCycleMomentumUpdaterHook,
    ParamSchedulerHook,
    StepLrUpdaterHook,
)

MINIMAL = {
    "model": "mlp",
    "dataset": "digits",
    "training": {"epochs": 2},
    "device": "cpu",
    "optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9},
}


def problems(**more) -> list[Problem]:
    return validate({**MINIMAL, **more})


@pytest.mark.parametrize("policy", ["CosineAnnealing", "cosineannealing", "cosine_annealing"])
def test_a_policy_becomes_the_hook_of_its_name(policy):
    config = load_config({**MINIMAL, "lr_config": {"policy": policy, "min_lr": 0.01, "warmup": "linear", "warmup_iters": 3},
                          "momentum_config": {"policy": "OneCycle"}})  # fmt: skip
    hooks = build(config)["hooks"]
    assert hooks == [
        CosineAnnealingLrUpdaterHook(min_lr=0.01, warmup="linear", warmup_iters=3),
        OneCycleMomentumUpdaterHook(),
    ]


def test_each_group_has_its_own_policy():
    config = load_config({**MINIMAL, "lr_config": {
        "head": {"policy": "cosine_annealing", "min_lr": 0.01},
        "rest": {"policy": "step", "step": 3},
    }})  # fmt: skip
    assert build(config)["hooks"] == [
        CosineAnnealingLrUpdaterHook(min_lr=0.01, groups=["head"]),
        StepLrUpdaterHook(step=3, groups=["rest"]),
    ]


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"policy": "cosin_annealing"}, ("lr_config", "head", "policy")),
        ({"policy": "step", "step": 3, "gama": 0.1}, ("lr_config", "head", "gama")),
        ({"policy": "step", "step": 3, "groups": ["rest"]}, ("lr_config", "head", "groups")),
    ],
)
def test_a_mistake_in_the_policy_of_a_group_is_located(part, path):
    (problem,) = problems(lr_config={"head": part})
    assert problem.path == path


def test_a_policy_for_an_unknown_group_is_an_error_before_training(tmp_path):
    config = {**MINIMAL, "work_dir": str(tmp_path / "run")}
    config["lr_config"] = {"haed": {"policy": "step", "step": 3}}
    config["optimizer"] = {**config["optimizer"], "groups": {"head": {"params": "*bias"}}}
    runner = Runner.from_config(config)
    with pytest.raises(ConfigError) as caught:
        runner.train()
    assert caught.value.suggestion.nearest == "head"
    assert caught.value.path[:2] == ("lr_config", "haed")


DOCUMENTED = "fixed step exp poly Inv CosineAnnealing FlatCosineAnnealing CosineRestart cyclic"


@pytest.mark.parametrize("policy", [*DOCUMENTED.split(), "OneCycle", "LinearAnnealing"])
def test_the_documented_names_of_policies_are_known(policy):
    found = problems(lr_config={"policy": policy})
    assert not any(problem.parameter == "policy" for problem in found)


@pytest.mark.parametrize(
    ("config", "parameter", "nearest"),
    [
        (
            {"lr_config": {"policy": "cosin_annealing", "min_lr": 0.0}},
            "policy",
            "CosineAnnealing",
        ),
        ({"lr_config": {"polcy": "step", "step": 3}}, "polcy", "policy"),
        ({"lr_config": {"step": 3}}, "policy", None),
        ({"lr_config": {"policy": 3}}, "policy", None),
        ({"lr_config": {"policy": "step", "steps": 3}}, "steps", "step"),
        ({"lr_config": {"policy": "step", "step": "x"}}, "step", None),
        ({"momentum_config": {"policy": "poly"}}, "policy", None),
        ({"scheduler": {"type": "StepLR"}}, "step_size", None),
        (
            {"scheduler": {"type": "CosineAnealingLR", "T_max": 3}},
            "type",
            "CosineAnnealingLR",
        ),
        (
            {"scheduler": [{"type": "StepLR", "step_size": 3, "by_epoch": "no"}]},
            "by_epoch",
            None,
        ),
        ({"scheduler": 3}, "scheduler", None),
    ],
)
def test_a_mistake_is_reported_with_its_section_and_the_nearest_name(config, parameter, nearest):
    (section,) = config
    problem = problems(**config)[0]
    assert problem.path[0] == section
    assert (problem.parameter, problem.suggestion.nearest) == (parameter, nearest)


def test_a_missing_policy_lists_the_known_ones():
    (problem,) = problems(lr_config={"step": 3})
    assert "CosineAnnealing" in problem.suggestion.known


def test_a_wrong_value_of_a_policy_is_reported_with_its_section():
    with pytest.raises(ConfigError) as caught:
        build({**MINIMAL, "lr_config": {"policy": "CosineAnnealing"}})
    (problem,) = caught.value.problems
    assert problem.path[0] == "lr_config"
    assert (problem.component, problem.parameter) == ("CosineAnnealingLrUpdaterHook", "min_lr")


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
    assert [type(scheduler).__name__ for scheduler in runner.scheduler] == [
        "StepLR",
        "ReduceLROnPlateau",
    ]
    assert runner.scheduler[0].optimizer is runner.optimizer
    assert (runner.scheduler[0].by_epoch, runner.scheduler[1].monitor) == (False, "accuracy")
    assert [type(hook) for hook in runner.hooks].count(ParamSchedulerHook) == 1


def test_a_configured_hook_that_steps_the_scheduler_replaces_the_default_one():
    config = {
        **MINIMAL,
        "scheduler": "ConstantLR",
        "hooks": [{"type": "ParamSchedulerHook", "by_epoch": False}],
    }
    assert [hook["type"] for _, hook in hook_configs(config)] == ["ParamSchedulerHook"]
    assert [
        hook["type"] for _, hook in hook_configs({**config, "hooks": [{"type": "LRSchedulerHook"}]})
    ] == ["LRSchedulerHook"]


def test_the_plan_shows_the_hooks_of_schedules_and_where_they_come_from(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "model: mlp\ndataset: digits\ntraining: {epochs: 1}\nlr_config: {policy: step, step: 2, priority: 20}\n",
        encoding="utf-8",
    )
    _, planned = plan(load_config(path))
    assert (planned[-1].hook.name, planned[-1].origin, planned[-1].priority_from) == (
        "StepLrUpdaterHook",
        f"{path}:4",
        "config",
    )


def test_another_policy_replaces_that_of_a_base_with_its_parameters(tmp_path):
    (tmp_path / "base.yaml").write_text("lr_config: {policy: step, step: 2}\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(
        "base: base.yaml\nlr_config: {policy: exp, gamma: 0.9}\n", encoding="utf-8"
    )
    assert load_config(tmp_path / "config.yaml")["lr_config"] == {"policy": "exp", "gamma": 0.9}


def test_the_section_checkpoint_has_the_parameters_of_the_hook():
    section = {"mirror": "memory://run", "keep_best": 3}
    hooks = build({**MINIMAL, "checkpoint": section})["hooks"]
    (hook,) = [each for each in hooks if isinstance(each, CheckpointHook)]
    assert (hook.mirror, hook.keep_best) == ("memory://run", 3)


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ({"miror": "memory://run"}, ("checkpoint", "miror")),
        ({"mirror": "http://host/run"}, ("checkpoint", "mirror")),
        ({"keep_best": 0}, ("checkpoint", "keep_best")),
    ],
)
def test_a_mistake_in_the_section_checkpoint_has_its_path(section, path):
    with pytest.raises(ConfigError) as caught:
        build({**MINIMAL, "checkpoint": section})
    assert caught.value.path == path


def test_a_second_checkpoint_hook_beside_the_section_is_an_error():
    with pytest.raises(ConfigError) as caught:
        build({**MINIMAL, "checkpoint": {}, "hooks": [{"type": "CheckpointHook"}]})
    assert caught.value.path == ("checkpoint",)
