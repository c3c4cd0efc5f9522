"""Reading a few batches of a loader without a trace."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, TensorDataset

from hookline.data import make_loader
from hookline.data.peek import can_peek, peeking

DATA = TensorDataset(torch.arange(12.0))


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(10))


class Shuffle:
    """A sampler with its own state."""

    def __init__(self) -> None:
        self.order = list(range(12))

    def __len__(self) -> int:
        return 12

    def __iter__(self):
        self.order.reverse()
        return iter(self.order)


class WithState(list):
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def read_all(loader) -> list[float]:
    return [float(value) for batch in loader for value in torch.as_tensor(batch[0]).flatten()]


LOADERS = {
    "ours": lambda: make_loader(DATA, 4, shuffle=True),
    "list": lambda: [[torch.tensor([1.0])], [torch.tensor([2.0])]],
    "sequential": lambda: DataLoader(DATA, 4),
    "generator": lambda: DataLoader(DATA, 4, shuffle=True, generator=seeded()),
    "sampler": lambda: DataLoader(DATA, 4, sampler=RandomSampler(DATA, generator=seeded())),
    "persistent": lambda: DataLoader(
        DATA, 4, shuffle=True, generator=seeded(), num_workers=1, persistent_workers=True
    ),
}


@pytest.mark.parametrize("kind", LOADERS)
def test_peeking_does_not_change_what_is_read_afterwards(kind):
    torch.manual_seed(0)
    expected = read_all(LOADERS[kind]())
    torch.manual_seed(0)
    loader = LOADERS[kind]()
    assert can_peek(loader)
    state = torch.get_rng_state()
    with peeking(loader, 2) as batches:
        assert len(list(batches)) == 2
    torch.set_rng_state(state)
    assert read_all(loader) == expected


@pytest.mark.parametrize(
    "loader",
    [
        make_loader(Stream()),
        DataLoader(Stream()),
        DataLoader(DATA, sampler=Shuffle()),
        DataLoader(WithState([1, 2])),
        (number for number in range(3)),
    ],
)
def test_loaders_that_may_not_begin_again_cannot_be_peeked_at(loader):
    assert not can_peek(loader)
