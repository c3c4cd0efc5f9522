from __future__ import annotations

import torch
from torch.utils.data import DataLoader

from hookline.data import ArrayDataset
from tests.problems import raises_problem


def test_a_batch_in_one_piece_equals_its_samples_collated():
    dataset = ArrayDataset(
        torch.randint(0, 256, (20, 3, 4, 4), dtype=torch.uint8), torch.arange(20), scale=1 / 255
    )
    (expected,) = DataLoader(torch.utils.data.Subset(dataset, [5, 3, 7]), batch_size=3)
    batch = dataset.take([5, 3, 7])
    assert type(batch) is type(expected)
    assert all(torch.equal(a, b) for a, b in zip(batch, expected, strict=True))
    assert batch[0].dtype == torch.float32
    assert 0 <= batch[0].min() <= batch[0].max() <= 1


def test_scaling_leaves_the_data_as_they_are():
    inputs = torch.ones(2, 3)
    dataset = ArrayDataset(inputs, torch.zeros(2), scale=0.5)
    assert dataset[0][0].tolist() == [0.5] * 3
    assert inputs.tolist() == [[1.0] * 3] * 2


def test_augmentation_is_applied_to_inputs_alone():
    dataset = ArrayDataset(torch.ones(2, 3), torch.ones(2), augment=torch.neg)
    assert dataset[1][0].tolist() == [-1.0] * 3
    assert dataset[1][1] == 1
    assert not dataset.deterministic


def test_a_subclass_that_takes_samples_in_its_own_way_counts_as_random():
    class Noisy(ArrayDataset):
        def __getitem__(self, index):
            inputs, target = super().__getitem__(index)
            return inputs + torch.rand(3), target

    assert ArrayDataset(torch.ones(2, 3), torch.ones(2)).deterministic
    assert not Noisy(torch.ones(2, 3), torch.ones(2)).deterministic


def test_inputs_without_targets_are_refused():
    with raises_problem(parameter="targets"):
        ArrayDataset(torch.zeros(3, 1), torch.zeros(2))
