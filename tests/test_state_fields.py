from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import pytest

from hookline.state_fields import annotate_defaults, collect_fields, restore_fields, state


@dataclass
class Counter:
    """An object with a parameter, state and something else."""

    step: int = 1
    count: int = state(0)
    seen: list[int] = state([])
    best: dict[str, float] = state(default_factory=lambda: {"loss": 1.0})
    cache: list[int] = field(default_factory=list, init=False)


def test_only_state_is_collected() -> None:
    assert collect_fields(Counter(step=3)) == {"count": 0, "seen": [], "best": {"loss": 1.0}}


def test_state_is_neither_a_parameter_nor_shown() -> None:
    with pytest.raises(TypeError):
        Counter(count=1)  # type: ignore[call-arg]
    assert "count" not in repr(Counter())


def test_objects_do_not_share_a_default() -> None:
    first, second = Counter(), Counter()
    first.seen.append(1)
    assert second.seen == []


def test_the_fields_that_a_mapping_has_are_restored_as_copies() -> None:
    saved = {"count": 4, "seen": [1, 2], "step": 9, "other": 1}
    counter = Counter()
    restore_fields(counter, saved)
    assert collect_fields(counter) == {"count": 4, "seen": [1, 2], "best": {"loss": 1.0}}
    assert counter.step == 1
    counter.seen.append(3)
    assert saved["seen"] == [1, 2]


def test_a_state_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(TypeError):
        restore_fields(Counter(), [("count", 4)])  # type: ignore[arg-type]


def test_a_class_attribute_becomes_the_default_of_an_inherited_field() -> None:
    @dataclass
    class Base:
        _: dataclasses.KW_ONLY
        priority: str = "NORMAL"
        frequency: int = 1

    class Low(Base):
        priority = "LOW"
        size: int = 3

    annotate_defaults(Low, Base, ("priority", "frequency"))
    cls = dataclass(Low)
    assert cls().priority == "LOW"
    assert cls(4).size == 4  # `priority` is still given by name only
    assert cls(priority="HIGH").priority == "HIGH"
    assert cls().frequency == 1
