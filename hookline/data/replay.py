"""Resume torch's DataLoader at any batch, whatever its sampler is.

The samplers of torch have no position. So the state of all random number generators is kept at the
beginning of an epoch. On resume, the epoch's indices are drawn again from that state, and those
that were used are skipped without reading data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, default_collate

from hookline.data.fetch import Fetch, is_deterministic
from hookline.data.generators import END, Isolated, capture_generators, restore_generators
from hookline.data.options import PASSED_ON
from hookline.data.protocols import is_epoch_aware, length_of
from hookline.data.replacement import make_resumable
from hookline.data.torch_samplers import (
    all_samplers,
    draws_at_once,
    draws_from_own_generator,
    fixed_batch_size,
    index_sampler,
    lookahead,
    stateful_sampler,
)
from hookline.data.worker_pool import WorkerPool
from hookline.errors import ConfigError
from hookline.rng import restore_rng, rng_state

BATCH_STRIDE = 2**32  # more than the samples of a batch


class ReplayPosition:
    """The position in the batches of a DataLoader with a map-style dataset.

    In one process, the order and all random numbers are those of a plain loop over the DataLoader.
    Random numbers that the dataset draws in worker processes depend on the epoch's base seed and
    the position in the epoch.

    Args:
        loader: The DataLoader. It is not changed.

    Attributes:
        epoch: The current epoch.
        batches_done: Batches before the one at which `begin_epoch` begins.
    """

    announcement: str | None = None
    is_shared = False

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.epoch = 0
        self.batches_done = 0
        self._loader = loader
        self._items_done = 0  # items of the index stream before `batches_done`
        self._start: dict[str, Any] = {}  # the generators at the beginning of the epoch
        self._at_save: dict[str, Any] = {}  # the loader's own generators in the checkpoint
        self._sampler_state: Any = None  # to begin at, in place of drawing indices again
        self._recent_states: deque[tuple[int, Any]] = deque(maxlen=lookahead(loader) + 2)
        self._computed: Any = None  # the loader of a run whose order was computed from its seed
        self._reader = _Reader(loader)
        is_seeded = loader.num_workers > 0 or length_of(loader) is None
        self._is_seeded = is_seeded and not is_deterministic(loader.dataset)
        self._pool: WorkerPool | None = None
        if loader.num_workers > 0 or loader.pin_memory:
            options = {name: getattr(loader, name) for name in PASSED_ON if name != "collate_fn"}
            self._pool = WorkerPool(self._reader, loader.num_workers, **options)

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        if self._computed is not None:
            return iter(self._computed)
        if self.batches_done == 0:
            self._start = {"rng": rng_state(), "generators": capture_generators(self._loader)}
            return self._read(*self._open_indices())
        before = rng_state()
        restore_rng(self._start["rng"])
        restore_generators(self._loader, self._start["generators"])
        if self._sampler_state is not None:
            stateful_sampler(self._loader).load_state_dict(deepcopy(self._sampler_state))
        seed, indices = self._open_indices(skip=self._items_done)
        restore_rng(before)
        if draws_at_once(index_sampler(self._loader)):
            restore_generators(self._loader, self._at_save)
        return self._read(seed, indices)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        self.batches_done = 0
        self._items_done = 0
        self._sampler_state = None
        if self._computed is not None:
            self._computed.set_epoch(epoch)
        for target in {id(each): each for each in all_samplers(self._loader)}.values():
            if is_epoch_aware(target):
                target.set_epoch(epoch)

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the position after a number of batches of the epoch."""
        if self._computed is not None:
            state: dict[str, Any] = self._computed.state_dict(batches_done)
            return state
        items = self._items_done + (batches_done - self.batches_done) * (
            fixed_batch_size(self._loader) or 1
        )
        state = {
            "kind": "replay",
            "epoch": self.epoch,
            "batches": batches_done,
            "items": items,
            "batch_size": fixed_batch_size(self._loader),
            "generators": capture_generators(self._loader),
        }
        if batches_done:
            state["start"] = self._start
            for number, sampler_state in self._recent_states:
                if number == batches_done:
                    state["sampler"] = sampler_state
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position."""
        if "samples" in state:  # its order was computed from the seed, for several ranks or by 0.1
            self._load_computed(state)
            return
        if state.get("kind") != "replay":
            message = "cannot continue inside an epoch: the checkpoint is of another kind of loader"
            raise ConfigError(message, component="train_loader", value=state.get("kind"))
        self.epoch = state["epoch"]
        self._items_done = state["items"]
        self.batches_done = state["batches"]
        self._at_save = dict(state["generators"])
        self._start = dict(state.get("start", {}))
        self._sampler_state = state.get("sampler")
        if not self.batches_done:
            restore_generators(self._loader, self._at_save)
        elif state["batch_size"] != fixed_batch_size(self._loader):
            self._use_other_batch_size(state["batch_size"])

    def _use_other_batch_size(self, before: int | None) -> None:
        now = fixed_batch_size(self._loader)
        samples = length_of(index_sampler(self._loader))
        is_possible = before is not None and samples is not None and self._sampler_state is None
        if now is None or not is_possible:
            raise ConfigError(
                f"cannot continue inside an epoch: the batch size was {before} and is now {now}; "
                "restore it, or start from the weights alone",
                component="train_loader",
                parameter="batch_size",
                value=now,
            )
        assert samples is not None
        left = max(samples - self._items_done, 0)
        batches_left = left // now if self._loader.drop_last else -(-left // now)
        self.batches_done = max(len(self._loader) - batches_left, 0)

    def _load_computed(self, state: Mapping[str, Any]) -> None:
        self._computed = make_resumable(self._loader, state["seed"])
        if self._computed is None:
            message = (
                "cannot continue inside an epoch: the sampler has changed since the checkpoint"
            )
            raise ConfigError(message, component="train_loader", parameter="sampler")
        self._computed.load_state_dict(state)
        self.epoch = self._computed.epoch
        self.batches_done = self._computed.batches_done

    def _open_indices(self, skip: int = 0) -> tuple[int, Iterator[Any]]:
        """Begin to draw the epoch's indices, as DataLoader does; return its base seed, too."""
        loader = self._loader
        sampler = index_sampler(loader)
        items = iter(_AtFirstUse(sampler) if draws_at_once(sampler) else sampler)
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator))
        seed = self._start.setdefault("seed", seed)
        if self._sampler_state is not None:
            skip = 0
        if draws_from_own_generator(sampler):
            deque(islice(items, skip), maxlen=0)
        else:
            items = Isolated(items)
            items.skip(skip)
        if type(loader.batch_sampler) is BatchSampler:
            size = loader.batch_sampler.batch_size
            items = _in_batches(items, size, loader.batch_sampler.drop_last)
        if stateful_sampler(loader) is not None:
            items = self._keep_states(items)
        return seed, items

    def _keep_states(self, items: Iterable[Any]) -> Iterator[Any]:
        """Keep the sampler's state after each of the last batches: indices are drawn ahead."""
        sampler = stateful_sampler(self._loader)
        self._recent_states.clear()
        for number, item in enumerate(items, self.batches_done + 1):
            self._recent_states.append((number, deepcopy(sampler.state_dict())))
            yield item

    def _read(self, seed: int, indices: Iterator[Any]) -> Iterator[Any]:
        """Read the batches of an index stream."""
        key = seed if self._is_seeded else None
        plans = ((key, number, item) for number, item in enumerate(indices, self.batches_done))
        if self._pool is not None:
            return self._pool.read(plans, seed)
        return self._read_here(plans)

    def _read_here(self, plans: Iterator[Any]) -> Iterator[Any]:
        plan: Any = next(plans, END)
        while plan is not END:
            batch = self._reader.read(plan)
            # Before the batch is used: at the epoch's last batch, the sampler finishes its epoch.
            plan = next(plans, END)
            yield batch


class _Reader(Dataset[Any]):
    """A reader of planned batches, in this process or in workers.

    A plan is the key of the random numbers (None if they are not seeded), the number of the batch
    in the epoch, and its indices.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.dataset = loader.dataset
        self._collate = loader.collate_fn
        self._is_single = loader.batch_sampler is None
        collate = None if loader.collate_fn is default_collate else loader.collate_fn
        self._fetch = Fetch(loader.dataset, self._collate_single if self._is_single else collate)

    def read(self, plan: tuple[int | None, int, Any]) -> Any:
        """Return the batch of a plan."""
        key, number, item = plan
        if key is None:
            return self._read_plainly(item)
        indices = [item] if self._is_single else list(item)
        first = number * BATCH_STRIDE
        return self._fetch.batch(key, indices, range(first, first + len(indices)))

    def __getitems__(self, plan: tuple[int | None, int, Any]) -> Any:
        """Return the batch of a plan; torch's DataLoader calls this in its workers."""
        return self.read(plan)

    def _read_plainly(self, item: Any) -> Any:
        if self._is_single:
            return self._collate(self.dataset[item])
        return self._fetch.plain_batch(item)

    def _collate_single(self, samples: list[Any]) -> Any:
        return self._collate(samples[0])


class _AtFirstUse:
    """An iterable that draws all items of another one at its first item."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        yield from list(self._items)


def _in_batches(items: Iterator[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    batch = _take(items, size)
    while len(batch) == size or (batch and not drop_last):
        yield batch
        batch = _take(items, size)


def _take(items: Iterator[Any], count: int) -> list[Any]:
    if isinstance(items, Isolated):
        return items.take(count)
    return list(islice(items, count))
