from __future__ import annotations

import torch
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from hookline.data import ArrayDataset, DataInfo, describe
from hookline.data.digits import Digits


class Nothing(Dataset):
    def __len__(self):
        return 0


class Mapped(Dataset):
    classes = ["cat", "dog"]

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return {"image": torch.rand(3, 16, 16), "label": 1}


class Stream(IterableDataset):
    num_classes = 4

    def __iter__(self):
        raise AssertionError("a stream must not be read to describe it")


def test_a_data_set_with_names_is_described_completely():
    info = DataInfo(1, 10, (1, 8, 8), tuple("0123456789"))
    assert describe(Digits()) == info
    assert describe(Subset(Digits(), [3, 4])) == info


def test_the_labels_of_a_tensor_data_set_are_counted():
    inputs, labels = torch.rand(4, 5), torch.tensor([0, 2, 1, 0])
    assert describe(TensorDataset(inputs, labels)) == DataInfo(None, 3, (5,), None)
    assert describe(TensorDataset(inputs, labels.float())) == DataInfo(None, None, (5,), None)


def test_what_is_unknown_is_none():
    assert describe(Nothing()) == DataInfo()
    assert describe(ArrayDataset(torch.rand(2, 4), torch.rand(2))) == DataInfo(input_shape=(4,))


def test_looking_at_a_sample_draws_no_random_numbers():
    before = torch.get_rng_state()
    assert describe(Mapped()) == DataInfo(3, 2, (3, 16, 16), ("cat", "dog"))
    assert torch.equal(before, torch.get_rng_state())


def test_a_stream_is_not_read():
    assert describe(Stream()) == DataInfo(num_classes=4)
