from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.checkpoint.objects import (
    check_no_lazy,
    collect_objects,
    load_objects,
    stateful_objects,
)
from hookline.errors import HooklineError


class Counter:
    """An object with a state."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def state_dict(self) -> dict[str, int]:
        return {"count": self.count} if self.count else {}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.count = state["count"]


def test_objects_with_a_state_are_found_once_and_known_ones_left_out() -> None:
    first, known = Counter(1), Counter(2)
    named = {"a": first, "again": first, "known": known, "class": Counter, "plain": 3}
    named["half"] = type("Half", (), {"state_dict": lambda self: {}})()
    assert stateful_objects(named, [known]) == {"a": first}


def test_empty_states_are_not_collected() -> None:
    linear = nn.Linear(1, 1)
    states = collect_objects(
        {"a": Counter(3), "empty": Counter(), "loss": nn.MSELoss(), "m": linear}
    )
    assert list(states) == ["a", "m"]
    assert states["a"] == {"count": 3}
    assert type(states["m"]) is dict
    assert torch.equal(states["m"]["weight"], linear.weight)


def test_states_are_loaded_and_those_that_fit_nothing_reported() -> None:
    loaded, without = Counter(1), Counter(2)
    objects = {"a": loaded, "b": without, "c": Counter(), "loss": nn.MSELoss()}
    problems = load_objects(objects, {"a": {"count": 7}, "loss": {"x": 1}, "gone": {}})
    assert (loaded.count, without.count) == (7, 2)
    assert [name for name in ("b", "loss", "gone") if any(f" {name}" in p for p in problems)] == [
        "b",
        "loss",
        "gone",
    ]
    assert len(problems) == 3


def test_a_state_of_another_kind_is_an_error_that_names_the_object() -> None:
    with pytest.raises(HooklineError) as caught:
        load_objects({"a": Counter(1)}, {"a": {}})
    assert caught.value.parameter == "a"
    assert isinstance(caught.value.__cause__, KeyError)


def test_modules_with_lazy_parameters_are_refused() -> None:
    check_no_lazy([nn.Linear(1, 1), 3])
    with pytest.raises(HooklineError) as caught:
        check_no_lazy([nn.Linear(1, 1), nn.LazyLinear(2)])
    assert caught.value.parameter == "model"
