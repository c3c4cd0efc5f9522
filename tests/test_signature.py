from __future__ import annotations

import functools
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from hookline.signature import check_arguments, check_positional, describe, fits, parameters
from tests.problems import fields

if TYPE_CHECKING:
    from somewhere import Absent  # type: ignore[import-not-found]


@dataclass
class Part:
    size: int
    rate: float = 0.1


class Open:
    def __init__(self, size: int = 1, **more: Any) -> None: ...


@dataclass
class PartlyHinted(Part):
    other: Absent | None = None


class BadlyHinted:
    def __init__(self, size: int, other: Absent) -> None: ...


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (1, float),
        (None, int | None),
        ("a", Literal["a", "b"]),
        ([1, 2], list[int]),
        ([1, 2], Sequence[int]),
        ([1, "a"], tuple[int, str]),
        ([1, 2, 3], tuple[int, ...]),
        ({"a": 1}, dict[str, int]),
        ({"a": 1}, Mapping[str, int]),
        ("a/b", Path),
        (object(), Any),
        (3, "a hint that was not resolved"),
    ],
)
def test_a_value_fits_its_hint(value, hint):
    assert fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (True, float),
        (1.5, int),
        ("1", int),
        (None, int),
        ("c", Literal["a", "b"]),
        (1, Literal[True]),
        ([1, "a"], list[int]),
        ("ab", list[str]),
        ([1], tuple[int, str]),
        ({"a": "b"}, dict[str, int]),
        ([1], dict[str, int]),
        (3, Path),
    ],
)
def test_a_value_that_does_not_fit_is_found(value, hint):
    assert not fits(value, hint)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "a whole number"),
        (int | None, "a whole number or null"),
        (Literal["a", 1], "one of 'a', 1"),
        (list[str], "a list of text"),
        (tuple[int, ...], "tuple of a whole number"),
        (Path, "Path"),
    ],
)
def test_a_hint_is_described_in_plain_words(hint, text):
    assert describe(hint) == text


def test_every_wrong_argument_is_a_problem_with_fields():
    unknown, wrong = check_arguments(Part, {"rat": 1, "size": "big"})
    assert fields(unknown, "component", "parameter", "nearest") == {
        "component": "Part",
        "parameter": "rat",
        "nearest": "rate",
    }
    assert fields(wrong, "component", "parameter", "value", "path") == {
        "component": "Part",
        "parameter": "size",
        "value": "big",
        "path": ("size",),
    }


def test_a_missing_argument_is_a_problem_unless_it_is_provided_later():
    (missing,) = check_arguments(Part, {})
    assert (missing.component, missing.parameter) == ("Part", "size")
    assert check_arguments(Part, {}, provided=frozenset(["size"])) == []


def test_a_number_in_quotes_gets_advice():
    (quoted,) = check_arguments(Part, {"size": "3"})
    assert quoted.suggestion.advice
    (word,) = check_arguments(Part, {"size": "three"})
    assert not word.suggestion.advice


def test_names_that_all_parts_accept_are_suggested():
    (unknown,) = check_arguments(Part, {"size": 1, "nam": "x"}, common=["name"])
    assert unknown.suggestion.nearest == "name"


def test_further_keyword_arguments_are_accepted_where_the_class_takes_them():
    assert check_arguments(Open, {"size": 2, "anything": 3}) == []
    assert parameters(Open).open_ended


def test_a_hint_that_cannot_be_resolved_accepts_everything():
    assert check_arguments(BadlyHinted, {"size": "big", "other": 3}) == []


def test_the_other_fields_of_a_dataclass_with_such_a_hint_are_still_checked():
    (wrong,) = check_arguments(PartlyHinted, {"size": "big", "other": 3})
    assert wrong.parameter == "size"


def test_a_type_without_a_signature_accepts_everything():
    assert parameters(type).open_ended


class Base:
    @classmethod
    def build(cls, size: int, **more: Any) -> Part:
        return Part(size)


class Copied(Base):
    """A class with a copy of a class method, as the Auto classes of transformers have."""

    build = classmethod(
        functools.update_wrapper(
            types.FunctionType(Base.build.__func__.__code__, globals()), Base.build
        )
    )


def test_a_copied_class_method_keeps_its_first_parameter():
    assert parameters(Copied.build).required() == ["size"]
    assert check_positional(Copied.build, [3], {}) == ({"size": 3}, [])
    (_, (surplus,)) = check_positional(Copied.build, [3, 4], {})
    assert surplus.path == ("args",)


def passing_all_on(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> None: ...

    return call


class Config:
    """A class whose constructor takes more than it declares, as configs of transformers do."""

    @passing_all_on
    def __init__(self, size: int) -> None: ...

    @property
    def num_labels(self) -> int:
        return 2


class Strict(Config):
    def __init__(self, size: int) -> None: ...


def test_a_property_is_accepted_where_the_constructor_takes_further_arguments():
    assert check_arguments(Config, {"size": 1, "num_labels": 3}) == []
    (unknown,) = check_arguments(Config, {"size": 1, "num_lables": 3})
    assert unknown.parameter == "num_lables"
    (unknown,) = check_arguments(Strict, {"size": 1, "num_labels": 3})
    assert unknown.parameter == "num_labels"
