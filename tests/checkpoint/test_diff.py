"""Differences of two checkpoints."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.checkpoint.diff import diff

NAN = float("nan")


@pytest.mark.parametrize(
    ("a", "b", "lines"),
    [
        ({"a": 1}, {"b": 1}, ["a: only in the first", "b: only in the second"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[1]: 2 and 3"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: 1 items and 2"]),
        ({"a": [1]}, {"a": (1,)}, ["a: [1] and (1,)"]),
        ({"a": 1}, {"a": 1.0}, ["a: 1 and 1.0"]),
        ({"w": torch.ones(2)}, {"w": torch.ones(3)}, ["w: shape (2,) and (3,)"]),
        ({"w": torch.ones(2)}, {"w": torch.ones(2).half()}, ["w: torch.float32 and torch.float16"]),
        (
            {"w": torch.zeros(4)},
            {"w": torch.tensor([0, 0.5, 0, -2])},
            ["w: 2 of 4 values differ, by up to 2"],
        ),
        (
            {"w": torch.tensor([True])},
            {"w": torch.tensor([False])},
            ["w: 1 of 1 values differ, by up to 1"],
        ),
        ({"w": torch.ones(2)}, {"w": 1}, ["w: a tensor (2,) and 1"]),
        (
            {"w": torch.tensor([NAN, 1])},
            {"w": torch.tensor([NAN, NAN])},
            ["w: 1 of 2 values differ, by up to nan"],
        ),
        (
            {"w": torch.tensor([1j])},
            {"w": torch.tensor([2j])},
            ["w: 1 of 1 values differ, by up to 1"],
        ),
    ],
)
def test_each_difference_is_a_line(a: object, b: object, lines: list[str]) -> None:
    assert diff(a, b) == lines


@settings(deadline=None, max_examples=50)
@given(
    st.recursive(
        st.integers() | st.floats() | st.text() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nothing_differs_from_itself(value: object) -> None:
    assert diff(value, value) == []


def test_equal_tensors_do_not_differ_even_if_they_hold_nan_or_are_sparse() -> None:
    tensors = [
        torch.tensor([1.0, NAN, float("inf")]),
        torch.eye(3).to_sparse(),
        torch.zeros(0),
        torch.ones(2, dtype=torch.complex64),
    ]
    assert diff(tensors, [tensor.clone() for tensor in tensors]) == []
