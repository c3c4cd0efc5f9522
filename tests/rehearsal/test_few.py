"""A few batches stand for all of them."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from hookline.data import make_loader
from hookline.rehearsal.few import shortened


@given(count=st.integers(1, 60), size=st.integers(1, 9), shuffle=st.booleans(), first=st.integers(1, 4), workers=st.just(0))
def test_the_first_batches_and_the_last_are_those_of_the_whole_loader(count, size, shuffle, first, workers):
    loader = make_loader(TensorDataset(torch.arange(count)), batch_size=size, shuffle=shuffle, seed=3, num_workers=workers)
    few = shortened(loader, first)
    whole = [batch[0].tolist() for batch in loader]
    wanted = whole if len(whole) <= first + 1 else [*whole[:first], whole[-1]]
    assert [batch[0].tolist() for batch in few] == wanted
    assert len(few) == len(wanted)
    assert len(loader) == len(whole)


@given(count=st.integers(4, 60), size=st.integers(1, 9), done=st.integers(0, 3))
def test_a_shortened_loader_goes_on_where_its_state_was_taken(count, size, done):
    few = shortened(make_loader(TensorDataset(torch.arange(count)), batch_size=size, shuffle=True))
    batches = [batch[0].tolist() for batch in few]
    done = min(done, len(batches))
    other = shortened(make_loader(TensorDataset(torch.arange(count)), batch_size=size, shuffle=True))
    other.load_state_dict(few.state_dict(done))
    assert other.batches_done == done
    assert [batch[0].tolist() for batch in other] == batches[done:]
