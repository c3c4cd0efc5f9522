from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, DataLoader, Dataset, StackDataset, Subset, TensorDataset

from hookline.data.digits import Digits
from hookline.data.fetch import Fetch, is_deterministic
from hookline.data.loader import make_loader
from hookline.data.seeding import epoch_key, preserved_rng, seed_sample

DRAWS = {
    "r": random.random,
    "g": lambda: random.gauss(0, 1),
    "n": np.random.rand,
    "m": np.random.normal,
    "t": lambda: torch.rand(()).item(),
    "s": lambda: torch.randn(()).item(),
}


class Declared(Dataset):
    """A deterministic data set that reads many samples at once."""

    deterministic = True

    def __getitems__(self, indices):
        return [torch.tensor(index) for index in indices]


class Sometimes(Dataset):
    """Samples that draw from the generators of their letters: none, some or all of them."""

    def __init__(self, letters: list[str]) -> None:
        self.letters = letters
        self.reads = 0

    def __len__(self) -> int:
        return len(self.letters)

    def __getitem__(self, index: int) -> tuple[int, list[float]]:
        self.reads += 1
        return index, [DRAWS[letter]() for letter in self.letters[index]]


def expected(dataset: Sometimes, key: int) -> dict[int, list[float]]:
    """What each sample draws if all generators are seeded for it."""
    samples = []
    with preserved_rng():
        for index in range(len(dataset)):
            seed_sample(key, index)
            samples.append(dataset[index])
    return dict(samples)


def drawn_by_the_run() -> list[float]:
    return [draw() for draw in DRAWS.values()]


@given(
    st.lists(st.text("rgnmts", max_size=3), min_size=1, max_size=40),
    st.integers(1, 9),
    st.integers(0, 20),
    st.integers(0, 3),
    st.booleans(),
)
def test_draws_depend_on_seed_epoch_and_sample_alone(letters, batch_size, start, epoch, shuffle):
    dataset = Sometimes(letters)
    loader = make_loader(dataset, batch_size, shuffle=shuffle, seed=4, collate_fn=list)
    loader.set_epoch(epoch)
    loader.load_state_dict(loader.state_dict(min(start, len(loader))))
    samples = expected(dataset, epoch_key(4, epoch))
    for batch in loader:
        assert batch == [(index, samples[index]) for index, _ in batch]


@given(st.lists(st.text("rgnmts", max_size=3), min_size=1, max_size=20), st.integers(1, 5))
def test_reading_leaves_the_numbers_of_the_run_alone(letters, batch_size):
    with preserved_rng():
        alone = [drawn_by_the_run() for _ in range(0, len(letters), batch_size)]
    with preserved_rng():
        loader = make_loader(Sometimes(letters), batch_size, collate_fn=list)
        assert [drawn_by_the_run() for _ in loader] == alone


@pytest.mark.parametrize("workers", [1, 2])
def test_draws_do_not_depend_on_the_number_of_workers(workers):
    # Batches without draws, with the first draw at their end, and with other generators later.
    letters = ["", "", "", "", "", "t", "", "", "r", "t", "", "", "", "gm", "", "nst", "", "", ""]
    dataset = Sometimes(letters)
    samples = expected(dataset, epoch_key(0, 0))
    for batch_size in (1, 3, 4):
        loader = make_loader(dataset, batch_size, num_workers=workers, collate_fn=list)
        assert dict(sample for batch in loader for sample in batch) == samples


@settings(max_examples=30)
@given(st.text("rgnmts", max_size=2), st.text("rgnmts", max_size=2), st.integers(2, 5))
def test_a_collate_function_draws_after_the_last_sample_of_its_batch(sample, batch, batch_size):
    dataset = Sometimes([sample] * 10)

    def collate(samples):
        return [index for index, _ in samples], [DRAWS[letter]() for letter in batch]

    for indices, drawn in make_loader(dataset, batch_size, shuffle=True, collate_fn=collate):
        with preserved_rng():
            seed_sample(epoch_key(0, 0), indices[-1])
            dataset[indices[-1]]
            assert drawn == [DRAWS[letter]() for letter in batch]


def test_a_collate_function_of_a_known_dataset_may_draw_as_well():
    dataset = TensorDataset(torch.arange(8))

    def batches(**options):
        return list(make_loader(dataset, 2, collate_fn=lambda _: torch.rand(()).item(), **options))

    torch.manual_seed(1)
    drawn = batches()
    assert len(set(drawn)) == 4
    torch.manual_seed(2)
    assert batches() == batches(num_workers=2) == drawn


def test_a_declared_collate_function_of_a_known_dataset_is_not_checked():
    def collate(samples):
        drawn.append(random.random())
        return samples

    drawn: list[float] = []
    collate.deterministic = True
    fetch = Fetch(Declared(), collate)
    random.seed(3)
    fetch.batch(1, [0, 1])
    random.seed(3)
    assert drawn == [random.random()]  # read once, with the numbers of the run


def test_a_sample_is_read_again_only_if_it_is_the_first_to_draw():
    for letters, reads in ((["", "", "", ""], 4), (["t"] * 4, 5), (["", "", "", "t"], 6)):
        dataset = Sometimes(letters)
        loader = make_loader(dataset, 2, collate_fn=list)
        list(loader)
        assert dataset.reads == reads
        list(loader)
        assert dataset.reads == reads + 4


def test_a_dataset_that_hides_its_draws_can_declare_them():
    class Hidden(Sometimes):
        deterministic = False

        def __getitem__(self, index):
            with preserved_rng():
                return super().__getitem__(index)

    dataset = Hidden(["", "rnt", "", "rnt"])
    samples = expected(dataset, epoch_key(0, 0))
    assert samples[1] != samples[3]
    assert (
        dict(sample for batch in make_loader(dataset, 2, collate_fn=list) for sample in batch)
        == samples
    )


def test_an_error_after_a_draw_leaves_the_numbers_of_the_run_alone():
    class Broken(Sometimes):
        def __getitem__(self, index):
            super().__getitem__(index)
            raise KeyError(index)

    with preserved_rng():
        alone = drawn_by_the_run()
    with preserved_rng():
        with pytest.raises(KeyError):
            next(iter(make_loader(Broken(["rnt"]))))
        assert drawn_by_the_run() == alone


def test_what_is_known_to_draw_no_random_numbers_is_not_seeded():
    tensors = TensorDataset(torch.zeros(3))
    for dataset in (
        tensors,
        Subset(tensors, [0]),
        ConcatDataset([tensors, Digits()]),
        Digits(),
        Declared(),
        [(0.0, 1)],
        range(3),
        StackDataset(tensors, tensors),
        StackDataset(inputs=tensors, targets=range(3)),
    ):
        assert is_deterministic(dataset)
    for dataset in (
        Digits(augment=True),
        ConcatDataset([tensors, Digits(augment=True)]),
        Subset(Digits(augment=True), [0]),
        StackDataset(tensors, Sometimes(["t"] * 3)),
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
    assert Fetch(Declared(), list).batch(0, [4, 2]) == [torch.tensor(4), torch.tensor(2)]
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
