"""Loaders with few batches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from hookline.data import make_loader
from hookline.dry_run.loaders import FirstBatches, count_batches, list_loaders, shorten_loader


def loader_of(count: int, size: int, **options):
    return make_loader(TensorDataset(torch.arange(count)), batch_size=size, **options)


@given(
    count=st.integers(1, 60), size=st.integers(1, 9), shuffle=st.booleans(), first=st.integers(1, 4)
)
def test_first_and_last_batches_are_those_of_the_whole_loader(count, size, shuffle, first):
    loader = loader_of(count, size, shuffle=shuffle, seed=3)
    short = shorten_loader(loader, first)
    whole = [batch[0].tolist() for batch in loader]
    expected = whole if len(whole) <= first + 1 else [*whole[:first], whole[-1]]
    assert [batch[0].tolist() for batch in short] == expected
    assert len(short) == len(expected)
    assert len(loader) == len(whole)


@given(count=st.integers(4, 60), size=st.integers(1, 9), done=st.integers(0, 3))
def test_a_short_loader_resumes_at_its_saved_position(count, size, done):
    short = shorten_loader(loader_of(count, size, shuffle=True))
    batches = [batch[0].tolist() for batch in short]
    done = min(done, len(batches))
    other = shorten_loader(loader_of(count, size, shuffle=True))
    other.load_state_dict(short.state_dict(done))
    assert other.batches_done == done
    assert [batch[0].tolist() for batch in other] == batches[done:]


def test_another_loader_keeps_its_first_batches_and_its_attributes():
    loader = DataLoader(TensorDataset(torch.arange(9)), batch_size=2)
    short = shorten_loader(loader, first=2)
    assert isinstance(short, FirstBatches)
    assert [batch[0].tolist() for batch in short] == [[0, 1], [2, 3]]
    assert short.batch_size == 2
    assert short.dataset is loader.dataset
    with pytest.raises(TypeError):
        len(short)


def test_the_first_batches_of_an_iterator_are_no_iterator():
    short = FirstBatches(iter([1, 2, 3]), 2)
    assert not hasattr(short, "__next__")
    assert short.announcement is None
    assert list(short) == [1, 2]


def test_no_loader_stays_no_loader():
    assert shorten_loader(None) is None
    assert list_loaders(None) == []
    assert count_batches(None) == 0


def test_each_loader_of_a_mapping_is_shortened():
    loaders = {"a": loader_of(20, 2), "b": loader_of(3, 2)}
    short = shorten_loader(loaders, first=2)
    assert {name: len(loader) for name, loader in short.items()} == {"a": 3, "b": 2}
    assert list_loaders(loaders) == [loaders["a"], loaders["b"]]
    assert count_batches(loaders) == 12


def test_loaders_without_a_length_cannot_be_counted():
    assert count_batches({"a": loader_of(4, 2), "b": iter([1])}) is None
