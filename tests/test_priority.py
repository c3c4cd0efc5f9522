from __future__ import annotations

from types import SimpleNamespace

import pytest

from hookline.errors import ConfigError
from hookline.priority import Priority, describe_order, get_priority

VALUES = {
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


def test_each_name_has_its_number() -> None:
    assert {priority.name: priority.value for priority in Priority} == VALUES
    assert {name: get_priority(name.lower()) for name in VALUES} == VALUES


@pytest.mark.parametrize("value", [0, 1, 55, 100, Priority.LOW])
def test_a_number_from_0_to_100_is_a_priority(value: int) -> None:
    result = get_priority(value)
    assert result == value
    assert type(result) is int


@pytest.mark.parametrize("value", [-1, 101])
def test_a_number_outside_is_refused(value: int) -> None:
    with pytest.raises(ConfigError) as caught:
        get_priority(value)
    assert (caught.value.parameter, caught.value.value) == ("priority", value)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        get_priority("NORMALL")
    assert (caught.value.parameter, caught.value.suggestion.nearest) == ("priority", "NORMAL")


@pytest.mark.parametrize("value", [1.5, None, True, [1]])
def test_anything_else_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        get_priority(value)  # type: ignore[arg-type]


def test_the_order_is_shown_by_site_with_names_and_numbers() -> None:
    first = SimpleNamespace(name="A", priority="NORMAL")
    second = SimpleNamespace(name="B", priority=55)
    text = describe_order({"before_run": [first, second], "after_run": [], "cleanup": [second]})
    assert text.splitlines() == [
        "before_run:",
        "  (NORMAL 50       ) A",
        "  (55              ) B",
        "cleanup:",
        "  (55              ) B",
    ]
