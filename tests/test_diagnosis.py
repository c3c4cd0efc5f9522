from __future__ import annotations

import pytest
import torch

from hookline.diagnosis import (
    FOREIGN_SITES,
    describe_bad_loss,
    describe_contents,
    describe_kind,
    describe_part,
    describe_shapes,
)
from hookline.engine import SITE_NAMES


def test_names_of_other_frameworks_lead_to_sites() -> None:
    assert set(FOREIGN_SITES.values()) <= set(SITE_NAMES)
    assert not set(FOREIGN_SITES) & set(SITE_NAMES)


def test_a_loss_that_can_be_backpropagated_has_no_description() -> None:
    assert describe_bad_loss(torch.ones((), requires_grad=True)) is None
    assert describe_bad_loss(torch.ones(1, 1, requires_grad=True)) is None


@pytest.mark.parametrize(
    ("loss", "part"),
    [
        (1.0, "a float"),
        (torch.ones(()), "[] (float32) without grad"),
        (torch.ones(2, requires_grad=True), "[2] (float32),"),
        (torch.ones(2, dtype=torch.float64), "[2] (float64) without grad"),
    ],
)
def test_a_bad_loss_is_described_by_what_is_wrong(loss: object, part: str) -> None:
    text = describe_bad_loss(loss)
    assert text is not None
    assert part in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"x": torch.zeros(2, 3), "y": 1}, "a dict: 'x' [2, 3] (float32), 'y' a int"),
        ([torch.zeros(1)], "a list of 1: [1] (float32)"),
        ((1, 2, 3, 4), "a tuple of 4: a int, a int, a int, a int"),
        ((1, 2, 3, 4, 5), "a tuple of 5: a int, a int, a int, a int, …"),
        ({}, "a dict with nothing"),
        ([], "a list of 0"),
        (torch.zeros(2, dtype=torch.int64), "[2] (int64)"),
        ("a", "a str"),
    ],
)
def test_contents_are_described_with_the_shapes_in_them(value: object, text: str) -> None:
    assert describe_contents(value) == text


def test_only_the_first_keys_of_a_large_mapping_are_listed() -> None:
    text = describe_kind({f"k{number}": 0 for number in range(9)})
    assert "'k7'" in text
    assert "'k8'" not in text


def test_predictions_and_targets_are_described_side_by_side() -> None:
    text = describe_shapes(torch.zeros(8, 10), [1, 2])
    assert text == "predictions [8, 10] (float32) and targets that are a list of 2"
    assert describe_part(3) == "a int"
