from __future__ import annotations

import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset

from hookline.data.digits import Digits
from hookline.data.fetch import Fetch, is_deterministic


class Declared(Dataset):
    """A deterministic data set that reads many samples at once."""

    deterministic = True

    def __getitems__(self, indices):
        return [torch.tensor(index) for index in indices]


def test_what_is_known_to_draw_no_random_numbers_is_not_seeded():
    tensors = TensorDataset(torch.zeros(3))
    for dataset in (
        tensors,
        Subset(tensors, [0]),
        ConcatDataset([tensors, Digits()]),
        Digits(),
        Declared(),
    ):
        assert is_deterministic(dataset)
    for dataset in (
        Digits(augment=True),
        ConcatDataset([tensors, Digits(augment=True)]),
        Subset(Digits(augment=True), [0]),
    ):
        assert not is_deterministic(dataset)


def test_a_batch_taken_in_one_piece_is_the_one_torch_would_make():
    tensors = TensorDataset(torch.rand(10, 2), torch.arange(10))
    for dataset in (tensors, Subset(tensors, [7, 2, 5]), Subset(Digits(), [1, 0, 9])):
        (expected,) = DataLoader(Subset(dataset, [2, 0]), batch_size=2)
        for indices in ([2, 0], torch.tensor([2, 0])):
            batch = Fetch(dataset, None).batch(0, indices)
            assert type(batch) is type(expected)
            assert all(torch.equal(a, b) for a, b in zip(batch, expected, strict=True))


def test_a_data_set_that_reads_many_samples_at_once_is_let():
    assert Fetch(Declared(), None).batch(0, [4, 2]).tolist() == [4, 2]


def test_a_collate_function_gets_the_single_samples():
    batch = Fetch(Digits(), list).batch(0, torch.tensor([3, 1]))
    assert [target.item() for _, target in batch] == Digits().targets[[3, 1]].tolist()


def test_random_numbers_of_a_sample_do_not_depend_on_its_batch():
    fetch = Fetch(Digits(augment=True), None)
    together, _ = fetch.batch(5, list(range(20)))
    apart = torch.cat([fetch.batch(5, [index])[0] for index in range(20)])
    assert torch.equal(together, apart)


def test_a_collate_function_may_draw_random_numbers():
    fetch = Fetch(Digits(augment=True), lambda samples: torch.rand(2))
    before = torch.get_rng_state()
    assert torch.equal(fetch.batch(5, [1, 2]), fetch.batch(5, [1, 2]))
    assert torch.equal(before, torch.get_rng_state())
