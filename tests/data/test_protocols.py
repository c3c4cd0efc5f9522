from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch.utils.data import DataLoader, IterableDataset

from hookline.data import make_loader
from hookline.data.protocols import (
    has_state,
    is_epoch_aware,
    is_positioned,
    is_stateful,
    length_of,
    set_loader_epoch,
)


class Stateful:
    """A loader with a state."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state) -> None: ...


class Half:
    """An object that can be saved and not loaded."""

    def state_dict(self):
        return {}


class Counted(Stateful):
    """An object whose state depends on an argument."""

    def state_dict(self, count):
        return {}


class Wrapper:
    """An object that passes everything on."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def __getattr__(self, name: str):
        return getattr(self.inner, name)


class Endless(IterableDataset):
    """A dataset without a length."""

    def __iter__(self):
        return iter(int, 1)


class EpochAware:
    """An object that remembers the epoch."""

    epoch = None

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Stateful(), True),
        (Wrapper(Stateful()), True),
        (Half(), False),
        (Counted(), False),
        (3, False),
    ],
)
def test_a_state_needs_both_methods_and_no_argument(target: object, expected: bool) -> None:
    assert has_state(target) is expected
    assert is_stateful(target) is expected


def test_a_loader_of_ours_has_a_position_and_counts_as_no_foreign_state() -> None:
    loader = make_loader([1, 2, 3], batch_size=1)
    assert is_positioned(loader)
    assert not is_stateful(loader)
    assert not is_positioned(DataLoader([1]))


def test_the_length_of_a_loader_may_be_unknown() -> None:
    assert length_of([1, 2]) == 2
    assert length_of(iter([1])) is None
    assert length_of(DataLoader(Endless())) is None


def test_the_epoch_is_passed_to_all_parts_of_a_loader() -> None:
    parts = {name: EpochAware() for name in ("sampler", "batch_sampler", "dataset")}
    loader = EpochAware()
    vars(loader).update(parts)
    set_loader_epoch(loader, 4)
    assert [part.epoch for part in (loader, *parts.values())] == [4] * 4
    set_loader_epoch(SimpleNamespace(sampler=3), 4)
    assert not is_epoch_aware(3)
