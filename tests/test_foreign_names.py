"""Names of Lightning and transformers lead to the ones of this package."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

import pytest
import torch
import yaml

from hookline import HOOKS, ConfigError, Runner
from hookline.config.schema import TOP_LEVEL, TRAINING, known_keys, suggest_key
from hookline.foreign_names import (
    ADVICE,
    ARGUMENTS,
    ATTRIBUTES,
    CALLBACKS,
    CONFIG_KEYS,
    HOOK_OPTIONS,
    PARAMETERS,
    HookOption,
    suggest_argument,
    suggest_class,
    suggest_config_key,
    suggest_parameter,
)
from hookline.runner_arguments import RULES
from hookline.signature import parameters
from tests.helpers import batches, small_model

UNKNOWN = re.compile(r"((\w+)\"?(?:=|: ))…")  # a parameter whose value is the user's
VALUES = {"best_metric": '"loss"', "modules": '"loss"', "momentum": "0.9"}  # others take a 2


def test_each_name_has_one_counterpart_and_is_no_name_of_ours() -> None:
    names = [*ARGUMENTS, *HOOK_OPTIONS, *ADVICE]
    assert len(names) == len(set(names))
    assert not set(names) & set(RULES)
    assert set(names) & {*TOP_LEVEL, *TRAINING} == {"dataset"}


@pytest.mark.parametrize(("name", "own"), ARGUMENTS.items())
def test_an_argument_leads_to_an_argument_of_runner_and_a_key_of_a_config(
    name: str, own: str
) -> None:
    assert own in RULES
    assert suggest_argument(name).nearest == own
    _assert_is_key(suggest_config_key(name).nearest)


@pytest.mark.parametrize(("argument", "key"), CONFIG_KEYS.items())
def test_an_argument_of_runner_leads_to_its_key(argument: str, key: str) -> None:
    assert argument in RULES
    assert suggest_config_key(argument).nearest == key
    _assert_is_key(key)


@pytest.mark.parametrize("option", HOOK_OPTIONS.values(), ids=lambda option: option.in_python())
def test_a_hook_is_written_so_that_python_and_yaml_read_it(option: HookOption) -> None:
    def value_of(parameter: re.Match[str]) -> str:
        return f"{parameter[1]}{VALUES.get(parameter[2], '2')}"

    hook = HOOKS.get(option.hook)
    call = UNKNOWN.sub(value_of, option.in_python())
    assert eval(call, {option.hook: hook})  # noqa: S307  # our own table
    given = yaml.safe_load(UNKNOWN.sub(value_of, option.in_yaml()))
    assert isinstance(HOOKS.build(given), hook)


def test_an_unknown_name_has_no_counterpart() -> None:
    assert not suggest_argument("patiance")
    assert not suggest_config_key("patiance")
    assert not suggest_config_key("device")


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ((), "max_epochs", "training.epochs"),
        (("training",), "max_epochs", "epochs"),
        (("training",), "num_train_epochs", "epochs"),
        (("training",), "callbacks", "hooks"),
        ((), "limit_val_batches", "training.max_val_batches"),
        ((), "check_val_every_n_epoch", "write hooks: [{type: EvalHook, interval: …}]"),
        (
            ("training",),
            "val_check_interval",
            "write hooks: [{type: EvalHook, interval: …, by_epoch: false}]",
        ),
        (("loader",), "per_device_train_batch_size", "write loader: {batch_size: …}"),
        ((), "seeed", "seed"),
    ],
)
def test_a_key_of_another_framework_leads_to_ours(
    path: tuple[str, ...], key: str, expected: str
) -> None:
    found = suggest_key(key, path, known_keys(path) or ())
    assert (found.nearest or found.advice) == expected


def test_an_attribute_of_a_trainer_leads_to_one_of_a_runner(tmp_path: Path) -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loaders = {f"{split}_loader": batches(1) for split in ("train", "val", "test")}
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    runner = Runner(
        model, **loaders, optimizer=optimizer, scheduler=schedule, max_iters=1, work_dir=tmp_path
    )
    runner.loss_fn = torch.nn.CrossEntropyLoss()
    runner.train()
    for name, own in ATTRIBUTES.items():
        assert not hasattr(runner, name)
        (path,) = re.findall(r"^\w+(?:\.\w+)?", own)
        assert attrgetter(path)(runner) is not None
    with pytest.raises(AttributeError, match="'global_step'; a runner has .optimizer_steps$"):
        runner.global_step  # noqa: B018


def test_a_parameter_of_a_callback_leads_to_one_of_a_hook() -> None:
    fields = {name for _, cls in HOOKS.items() for name in parameters(cls).known}
    assert set(PARAMETERS.values()) <= fields
    with pytest.raises(ConfigError) as caught:
        HOOKS.build({"type": "CheckpointHook", "monitor": "val_loss", "save_top_k": 3})
    assert [each.suggestion.nearest for each in caught.value.problems] == [
        "best_metric",
        "keep_best",
    ]
    assert suggest_parameter("monitor", ["monitoring"]).nearest == "monitoring"


def test_a_callback_leads_to_a_hook() -> None:
    assert all(name in HOOKS for name in CALLBACKS.values())
    assert not any(name in HOOKS for name in CALLBACKS)
    with pytest.raises(ConfigError, match="did you mean 'LoggerHook'"):
        HOOKS.get("LearningRateMonitor")
    assert suggest_class("Timer", ["Timers"]).nearest == "Timers"


def _assert_is_key(key: str | None) -> None:
    assert key is not None
    section, _, inside = key.partition(".")
    assert section in TOP_LEVEL
    assert section != "training" or inside in TRAINING
