from __future__ import annotations

from dataclasses import dataclass

import pytest

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hook_registry import HookRegistry, check_common, hook_type_error


@dataclass
class PoliteHook(BaseHook):
    """A hook with a parameter."""

    greeting: str = "hello"


@dataclass
class RankedHook(BaseHook):
    """A hook that takes `priority` by position."""

    priority: str = "LOW"
    size: int = 1


class ConvertedHook(BaseHook):
    """A hook that is built from a config by a method."""

    def __init__(self, total: int) -> None:
        self.total = total

    @classmethod
    def from_config(cls, parts: int = 1) -> ConvertedHook:
        return cls(10 * parts)


@pytest.fixture
def registry() -> HookRegistry[BaseHook]:
    registry: HookRegistry[BaseHook] = HookRegistry("hook", BaseHook)
    for cls in (PoliteHook, RankedHook, ConvertedHook):
        registry.register()(cls)
    return registry


def test_a_config_sets_own_and_common_parameters(registry) -> None:
    config = {"type": "PoliteHook", "greeting": "hi", "name": "me", "priority": 3, "frequency": 2}
    hook = registry.build(config)
    assert (hook.greeting, hook.name, hook.priority, hook.frequency) == ("hi", "me", 3, 2)


def test_null_means_the_default_name(registry) -> None:
    assert registry.build({"type": "PoliteHook", "name": None}).name == PoliteHook().name


def test_common_parameters_are_not_own_ones(registry) -> None:
    assert list(registry.own_parameters(PoliteHook).known) == ["greeting"]
    assert list(registry.own_parameters(ConvertedHook).known) == ["parts"]


def test_the_method_from_config_builds_a_hook_that_has_one(registry) -> None:
    assert registry.build({"type": "ConvertedHook", "parts": 3}).total == 30
    with pytest.raises(ConfigError) as caught:
        registry.build({"type": "ConvertedHook", "total": 3})
    assert caught.value.parameter == "total"


def test_all_problems_of_a_config_are_found_at_once(registry) -> None:
    config = {"type": "PoliteHook", "greting": "hi", "priority": 101, "frequency": 0, "name": 3}
    problems = registry.check(config)
    assert [problem.parameter for problem in problems] == [
        "greting",
        "priority",
        "name",
        "frequency",
    ]
    assert {problem.component for problem in problems} == {"PoliteHook"}


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({}, 0),
        ({"name": None}, 0),
        ({"name": "a", "priority": "LOW", "frequency": 1}, 0),
        ({"frequency": 1.5}, 1),
        ({"frequency": -1}, 1),
        ({"priority": "LOWW"}, 1),
        ({"priority": None}, 1),
        ({"name": 1, "frequency": None}, 2),
    ],
)
def test_common_parameters_are_checked(given: dict[str, object], count: int) -> None:
    problems = check_common("AnyHook", given)
    assert len(problems) == count
    assert all(problem.path == (problem.parameter,) for problem in problems)


def test_a_misspelt_priority_is_suggested() -> None:
    (problem,) = check_common("AnyHook", {"priority": "HIHG"})
    assert problem.suggestion.nearest == "HIGH"


def test_something_that_is_no_hook_is_refused(registry) -> None:
    with pytest.raises(TypeError):
        registry.build(3)


def test_a_class_in_place_of_an_object_is_shown_with_its_arguments() -> None:
    assert "ConvertedHook(total=…)" in str(hook_type_error(ConvertedHook))
    assert "3" in str(hook_type_error(3))
