"""Copies of the samples of a step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hookline.visual.samples import get_class_names, take_samples
from tests.helpers import make_runner


def runner_with(tmp_path, batch, outputs):
    runner = make_runner(tmp_path)
    runner.batch, runner.outputs = batch, outputs
    return runner


def test_the_first_samples_are_copies(tmp_path):
    inputs, scores = torch.rand(5, 1, 4, 4), torch.rand(5, 3, requires_grad=True)
    samples = take_samples(
        runner_with(
            tmp_path, (inputs, torch.arange(5)), {"predictions": scores, "targets": torch.arange(5)}
        ),
        2,
    )
    before = inputs[:2].clone()
    inputs.zero_()
    assert np.array_equal(samples.inputs, before.numpy())
    assert samples.targets.tolist() == [0, 1]
    assert samples.predictions.shape == (2, 3)


@pytest.mark.parametrize(
    "batch",
    [
        {"inputs": torch.zeros(3, 1, 4, 4), "labels": torch.ones(3)},
        [torch.zeros(3, 1, 4, 4), torch.ones(3)],
        {"image": torch.zeros(3, 1, 4, 4), "target": torch.ones(3)},
    ],
)
def test_inputs_and_targets_are_found_in_dicts_and_lists(tmp_path, batch):
    samples = take_samples(runner_with(tmp_path, batch, {"loss": torch.zeros(())}), 2)
    assert samples.inputs.shape == (2, 1, 4, 4)
    assert samples.targets.tolist() == [1, 1]
    assert samples.predictions is None
    assert [image.shape for image in samples.images()] == [(4, 4, 1)] * 2


def test_lists_of_dicts_and_of_images_of_several_sizes_are_copied(tmp_path):
    batch = (
        [torch.zeros(3, 4, 5), torch.zeros(3, 6, 7)],
        [{"boxes": torch.ones(2, 4)}, {"boxes": torch.ones(0, 4)}],
    )
    samples = take_samples(runner_with(tmp_path, batch, {"predictions": None, "targets": None}), 8)
    assert [image.shape for image in samples.images()] == [(4, 5, 3), (6, 7, 3)]
    assert samples.targets[0]["boxes"].shape == (2, 4)


def test_bfloat16_becomes_float32(tmp_path):
    samples = take_samples(
        runner_with(tmp_path, (torch.ones(2, 4, 4, dtype=torch.bfloat16), None), {}), 1
    )
    assert samples.inputs.dtype == np.float32


def test_inputs_that_are_not_images_are_rejected(tmp_path):
    with pytest.raises(ValueError, match=r"got \[2, 6\]"):
        take_samples(runner_with(tmp_path, (torch.ones(2, 6), None), {}), 2).images()
    with pytest.raises(ValueError, match="got NoneType"):
        take_samples(runner_with(tmp_path, {"text": "x"}, {}), 2).images()


def test_class_names_come_from_the_data_set(tmp_path):
    class Data:
        class_names = ("cat", "dog")

    class Loader(list):
        dataset = Data()

    runner = make_runner(tmp_path, train_loader=Loader([1]), val_loader={"clean": Loader([1])})
    assert get_class_names(runner, "train") == get_class_names(runner, "val") == ["cat", "dog"]
    assert get_class_names(make_runner(tmp_path), "train") == []
