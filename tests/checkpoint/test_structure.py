from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.structure import (
    MAX_COUNT,
    MAX_DEPTH,
    check_depth,
    check_structure,
    is_count,
    restoring,
)
from hookline.errors import ConfigError

GOOD: dict[str, Any] = {
    "meta": {
        "epoch": 0,
        "iter": MAX_COUNT,
        "inner_iter": 0,
        "optimizer_steps": 1,
        "world_size": 1,
        "time": 1.5,
        "best": {"accuracy": {"value": 1.0}},
        "metrics": {"accuracy": 1.0},
        "config": {},
        "hyperparameters": [{"lr": 0.1}],
        "param_groups": {"": [["a", "b"], []]},
        "frozen": {"initial": [], "saved": ["a"]},
    },
    "state_dict": {},
    "ema_state_dict": {},
    "hooks": {},
    "objects": {},
    "optimizer": {},
    "events": {},
    "rng": {},
    "by_rank": [torch.zeros(1)],
}
BAD: dict[tuple[str, ...], list[Any]] = {
    ("meta", "epoch"): [-1, 1.0, True, MAX_COUNT + 1, None, "1"],
    ("meta", "iter"): [-1, None],
    ("meta", "inner_iter"): [-1],
    ("meta", "optimizer_steps"): [-1],
    ("meta", "world_size"): [-1],
    ("meta", "time"): ["now", float("nan"), True],
    ("meta", "best"): [[], {"accuracy": 1.0}],
    ("meta", "metrics"): [[]],
    ("meta", "config"): [[]],
    ("meta", "hyperparameters"): ["text", 1],
    ("meta", "param_groups"): [[], {"": "ab"}, {"": ["a"]}],
    ("meta", "frozen"): [[], {"initial": []}, {"initial": [], "saved": "a"}],
    ("by_rank",): [{}, [1], torch.zeros(1)],
    **{
        (name,): [[], 1, None]
        for name in (
            "state_dict",
            "ema_state_dict",
            "hooks",
            "objects",
            "optimizer",
            "events",
            "rng",
        )
    },
}


def with_value(path: tuple[str, ...], value: object) -> dict[str, Any]:
    checkpoint = copy.deepcopy(GOOD)
    target = checkpoint
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return checkpoint


def problems_of(checkpoint: dict[str, Any]) -> list[tuple[str, ...]]:
    with pytest.raises(CheckpointError) as caught:
        check_structure(checkpoint, "last.pth")
    assert {problem.file for problem in caught.value.problems} == {"last.pth"}
    return [problem.path for problem in caught.value.problems]


def test_a_good_checkpoint_passes_with_its_required_parts_alone() -> None:
    check_structure(GOOD, "last.pth")
    check_structure({"meta": {"iter": 0, "epoch": 0}, "state_dict": {}}, "last.pth")
    check_structure(with_value(("meta", "hyperparameters"), None), "last.pth")


def test_every_part_of_a_wrong_form_is_named() -> None:
    wrong = []
    for path, values in BAD.items():
        for value in values:
            if problems_of(with_value(path, value)) != [path]:
                wrong.append((path, value))
    assert wrong == []
    checked = {(name,) for name in GOOD if name != "meta"}
    checked |= {("meta", name) for name in GOOD["meta"]}
    assert checked == set(BAD)


def test_missing_parts_are_named_together() -> None:
    required = [("meta",), ("meta", "epoch"), ("meta", "iter"), ("state_dict",)]
    assert problems_of({}) == required
    assert problems_of({"meta": 3, "state_dict": {}}) == required[:3]
    with pytest.raises(CheckpointError, match="state_dict.*is missing|is missing.*state_dict"):
        check_structure({"meta": {"iter": 0, "epoch": 0}}, "last.pth")


def nested(levels: int, kind: type) -> object:
    value: object = 0
    for _ in range(levels):
        value = {"a": value} if kind is dict else kind([value])
    return value


@pytest.mark.parametrize("kind", [dict, list, tuple])
def test_containers_may_be_nested_up_to_a_limit(kind: type) -> None:
    check_depth(nested(MAX_DEPTH, kind), "last.pth")
    with pytest.raises(CheckpointError) as caught:
        check_depth(nested(MAX_DEPTH + 1, kind), "last.pth")
    assert caught.value.problems[0].file == "last.pth"
    with pytest.raises(CheckpointError):
        check_depth(nested(100_000, kind), "last.pth")


def test_an_error_of_a_part_becomes_one_of_the_checkpoint() -> None:
    with pytest.raises(CheckpointError) as caught, restoring("optimizer", "SGD"):
        raise KeyError("first\nsecond")
    assert caught.value.component == "SGD"
    assert "optimizer" in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(CheckpointError), restoring("optimizer"):
        raise ValueError


def test_an_error_with_its_own_words_stays() -> None:
    with pytest.raises(ConfigError), restoring("optimizer"):
        raise ConfigError("wrong")


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1])
def test_a_count_is_a_whole_number(value: object) -> None:
    assert not is_count(value)
    assert is_count(0)
