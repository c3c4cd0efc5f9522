from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import hookline.data
from hookline.data import DATASETS
from hookline.data.digits import Digits, shift_randomly
from tests.problems import raises_problem


def test_the_splits_have_their_sizes_and_make_up_the_whole():
    parts = [Digits(split) for split in ("train", "val", "test")]
    assert [len(part) for part in parts] == [1257, 270, 270]
    assert torch.equal(torch.cat([part.inputs for part in parts]), Digits("all").inputs)


def test_images_are_numbers_from_0_to_1_and_classes_are_spread_evenly():
    for split in ("train", "val", "test"):
        data = Digits(split)
        assert data.inputs.shape[1:] == (1, 8, 8)
        assert (data.inputs.min(), data.inputs.max()) == (0, 1)
        share = torch.bincount(data.targets) / len(data)
        assert ((share - 0.1).abs() < 0.01).all()


@pytest.mark.slow
def test_they_are_the_digits_of_scikit_learn():
    original = pytest.importorskip("sklearn.datasets").load_digits()
    with np.load(
        Path(hookline.data.__file__).parent / "files" / "digits.npz", allow_pickle=False
    ) as arrays:
        index = arrays["index"]
    assert sorted(index) == list(range(1797))
    assert np.array_equal(Digits("all").inputs.squeeze(1).numpy() * 16, original.images[index])
    assert np.array_equal(Digits("all").targets.numpy(), original.target[index])


def test_their_source_is_documented_next_to_them():
    text = (Path(hookline.data.__file__).parent / "files" / "DIGITS.txt").read_text()
    assert "Alpaydin" in text
    assert "CC BY 4.0" in text


def test_augmentation_moves_an_image_by_at_most_a_pixel():
    image = torch.zeros(1, 8, 8)
    image[0, 4, 4] = 1
    places = {tuple(shift_randomly(image).nonzero()[0].tolist()) for _ in range(200)}
    assert places == {(0, row, column) for row in (3, 4, 5) for column in (3, 4, 5)}


def test_validation_and_test_images_are_not_augmented():
    assert [
        Digits(split, augment=True).deterministic for split in ("train", "all", "val", "test")
    ] == [False, False, True, True]


def test_a_config_builds_them_and_a_wrong_split_is_rejected():
    assert len(DATASETS.build({"type": "digits", "split": "val"})) == 270
    with raises_problem(component="Digits", parameter="split", value="valid"):
        DATASETS.build({"type": "digits", "split": "valid"})
