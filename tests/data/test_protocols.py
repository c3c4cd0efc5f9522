from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from hookline import BaseHook, Runner, drive
from hookline.data import make_loader
from hookline.data.protocols import (
    count_batches,
    has_state,
    is_epoch_aware,
    is_positioned,
    is_stateful,
    length_of,
    set_default_seed,
    set_loader_epoch,
)
from hookline.hooks import CheckpointHook, EvalHook, StopAtHook
from tests.helpers import small_model


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


def test_the_batches_of_several_loaders_are_counted_up_to_a_limit_of_each() -> None:
    loaders = {"a": [1, 2, 3], "b": [1]}
    assert count_batches(loaders) == 4
    assert count_batches(loaders, limit=2) == 3
    assert count_batches([1, 2]) == 2
    assert count_batches({"a": [1], "endless": DataLoader(Endless())}) is None


def test_the_epoch_is_passed_to_all_parts_of_a_loader() -> None:
    parts = {name: EpochAware() for name in ("sampler", "batch_sampler", "dataset")}
    loader = EpochAware()
    vars(loader).update(parts)
    set_loader_epoch(loader, 4)
    assert [part.epoch for part in (loader, *parts.values())] == [4] * 4
    set_loader_epoch(SimpleNamespace(sampler=3), 4)
    assert not is_epoch_aware(3)


class Order(BaseHook):
    """Keeps the first feature of the first sample of each batch."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def before_train_iter(self, runner):
        self.seen.append(float(runner.batch[0][0, 0]))


def numbered_samples() -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.full((6,), float(number)), torch.tensor(number % 3)) for number in range(24)]


def train_and_record(work_dir, *, seed, loader_seed=None, **parts) -> list[float]:
    model = small_model()
    order = Order()
    hooks = [order, *parts.pop("hooks", ())]
    loader = make_loader(numbered_samples(), batch_size=4, shuffle=True, seed=loader_seed)
    Runner(
        model,
        train_loader=loader,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=2,
        seed=seed,
        work_dir=work_dir,
        hooks=hooks,
        **parts,
    ).train()
    return order.seen


def test_the_seed_of_a_run_is_that_of_a_loader_without_one(tmp_path):
    first = train_and_record(tmp_path / "1", seed=1)
    assert train_and_record(tmp_path / "2", seed=2) != first
    assert train_and_record(tmp_path / "3", seed=None, loader_seed=1) == first


def test_a_loader_keeps_its_seed(tmp_path):
    first = train_and_record(tmp_path / "1", seed=1, loader_seed=0)
    assert train_and_record(tmp_path / "2", seed=2, loader_seed=0) == first
    assert train_and_record(tmp_path / "3", seed=None) == first


def test_a_resumed_run_keeps_the_seed_of_its_checkpoint(tmp_path):
    whole = train_and_record(tmp_path / "whole", seed=1)
    hooks = [StopAtHook(iter=4), CheckpointHook()]
    part = train_and_record(tmp_path / "run", seed=1, hooks=hooks)
    rest = train_and_record(tmp_path / "run", seed=2, resume="auto")
    assert part + rest == whole


def test_an_external_loop_passes_its_seed_on(tmp_path):
    orders = {}
    for seed in (None, 0, 1):
        model = small_model()
        loader = make_loader(numbered_samples(), batch_size=4, shuffle=True)
        with drive([], model, None, loader, max_epochs=1, seed=seed, work_dir=tmp_path) as run:
            orders[seed] = [float(inputs[0, 0]) for inputs, _ in run]
    assert orders[None] == orders[0] != orders[1]


def test_the_loader_of_an_eval_hook_gets_the_seed_of_the_run(tmp_path):
    loader = make_loader(numbered_samples(), batch_size=4)
    train_and_record(tmp_path, seed=5, hooks=[EvalHook(dataloader=loader)])
    assert loader.sampler.seed == 5


def test_streams_and_loaders_by_name_get_a_default_seed():
    loaders = {"stream": make_loader(Endless()), "own": make_loader([1, 2], seed=3)}
    set_default_seed(loaders, 7)
    assert loaders["stream"].seed == 7
    assert loaders["own"].sampler.seed == 3
