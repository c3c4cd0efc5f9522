"""Loading that can stop anywhere and go on exactly there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
    get_worker_info,
)
from torch.utils.data.distributed import DistributedSampler

from hookline.data.fetch import Fetch
from hookline.data.options import check_loader, find_function
from hookline.data.sampler import EpochSampler
from hookline.data.seeding import epoch_key
from hookline.errors import ConfigError


def make_loader(
    dataset: Dataset[Any],
    batch_size: int = 32,
    shuffle: bool = False,
    num_workers: int = 0,
    seed: int = 0,
    drop_last: bool = False,
    *,
    rank: int = 0,
    world_size: int = 1,
    **options: Any,
) -> ResumableLoader | StreamLoader:
    """A loader whose batches depend on (seed, epoch) alone; `options` go to torch's DataLoader, `collate_fn` also as a dotted path."""
    own = {"batch_size": batch_size, "shuffle": shuffle, "num_workers": num_workers, "seed": seed, "drop_last": drop_last}
    problems = check_loader({**own, **options})
    if problems:
        raise ConfigError(problems)
    if options.get("collate_fn") is not None:
        options["collate_fn"] = find_function(options["collate_fn"])
    if isinstance(dataset, IterableDataset):
        if shuffle:
            raise ConfigError("loader: 'shuffle' must be false for an IterableDataset, which gives its samples in its own order")
        return StreamLoader(dataset, seed, batch_size=batch_size, num_workers=num_workers, drop_last=drop_last, **options)
    length = len(dataset)  # type: ignore[arg-type]
    if length == 0:
        raise ValueError(f"the data set {type(dataset).__name__} is empty")
    sampler = EpochSampler(length, batch_size, shuffle, seed, drop_last, rank, world_size)
    return ResumableLoader(dataset, sampler, num_workers, **options)


class ResumableLoader:
    """Batches in an order that depends on (seed, epoch) alone, from any sample of an epoch on.

    Iterating changes nothing in the loader, so that a hook may iterate too: where an epoch stands is known to whoever trains,
    who says it when the state is taken (`state_dict(batches_done)`). `iter(loader)` begins at the epoch's first
    batch, or, after `load_state_dict` and until the next `set_epoch`, at the first one that was not consumed.
    """

    resumable = True
    not_resumable: str | None = None

    def __init__(
        self,
        dataset: Dataset[Any],
        sampler: EpochSampler,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        worker_init_fn: Callable[[int], None] | None = None,
        **options: Any,
    ) -> None:
        self.dataset, self.sampler, self.num_workers, self.epoch = dataset, sampler, num_workers, 0
        self._start = 0
        self._fetch = Fetch(dataset, collate_fn)
        self._in_process = num_workers == 0 and not options.get("pin_memory")
        self._plan = _Plan()
        self._newest: object = None
        self._workers: DataLoader[Any] = DataLoader(
            self._fetch,
            batch_sampler=self._plan,  # type: ignore[arg-type]  # not lists of indices, but what Fetch takes
            num_workers=num_workers,
            collate_fn=_as_it_is,
            worker_init_fn=_WorkerStart(worker_init_fn),
            generator=torch.Generator(),  # without one of its own it would draw from the global one
            **options,
        )

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    @property
    def batches_done(self) -> int:
        """How many of the epoch's batches lie before the one at which `iter(loader)` begins, counted in today's batch size."""
        return len(self) - self.sampler.count(self._start)

    def __len__(self) -> int:
        """The number of batches in a whole epoch."""
        return self.sampler.count()

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(self._start)

    def whole_epoch(self) -> Iterator[Any]:
        """All batches of the current epoch, also where it was resumed in its middle."""
        return self._iterate(0)

    def last_share(self) -> float:
        """This process's part of the epoch's last batch, compared with an even division of it."""
        return self.sampler.last_share(self._start)

    def last_weight(self) -> float:
        """How large the epoch's last batch is, over all processes, compared with a full one."""
        return self.sampler.last_weight(self._start)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch, self._start = epoch, 0

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Where an epoch stands when so many of its batches are consumed; workers may have read further, which does not count."""
        before = self.batches_done
        samples = self.sampler.after(self._start, batches_done - before) if batches_done >= before else self.sampler.after(0, batches_done)
        return {
            "epoch": self.epoch,
            "samples": samples,
            "seed": self.sampler.seed,
            "shuffle": self.sampler.shuffle,
            "length": self.sampler.length,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where a state was taken; its seed is taken over, because the order of the epoch depends on it."""
        if state["samples"]:
            for name in ("length", "shuffle"):
                if state[name] != getattr(self.sampler, name):
                    raise ValueError(
                        f"cannot go on at sample {state['samples']} of epoch {state['epoch'] + 1}: the data's {name} was {state[name]} "
                        f"and is {getattr(self.sampler, name)}, so that the samples not yet seen are unknown; restore the data, "
                        "or start from the weights alone"
                    )
        self.sampler = replace(self.sampler, seed=state["seed"])
        self.epoch, self._start = state["epoch"], state["samples"]

    def _iterate(self, start: int) -> Iterator[Any]:
        key, batches = epoch_key(self.sampler.seed, self.epoch), self.sampler.batches(self.epoch, start)
        if self._in_process:  # torch's own loader would add some 60 µs to every batch
            return map(partial(self._fetch.batch, key), batches)
        self._plan.messages = ((key, batch.tolist()) for batch in batches)
        iterator = iter(self._workers)
        return self._while_newest(iterator) if self._workers.persistent_workers else iterator

    def _while_newest(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """Torch lets persistent workers serve one iterator: a second one would take the first one's batches in silence."""
        token = self._newest = object()
        return _guarded(iterator, lambda: self._newest is token)


class StreamLoader:
    """Batches of an IterableDataset, in whatever order it gives its samples; it cannot begin in the middle."""

    resumable = False
    not_resumable: str | None = "an IterableDataset has no positions: what an interrupted epoch has read is read again and skipped"
    batches_done = 0

    def __init__(self, dataset: IterableDataset[Any], seed: int = 0, **options: Any) -> None:
        self.dataset, self.seed, self.epoch = dataset, seed, 0
        self.batch_size: int = options["batch_size"]
        self._generator = torch.Generator()
        self._loader: DataLoader[Any] = DataLoader(dataset, generator=self._generator, **options)

    def __len__(self) -> int:
        """The number of batches, or TypeError if the data set does not tell its length."""
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._generator.manual_seed(epoch_key(self.seed, self.epoch))  # from which the workers' seeds are drawn
        return iter(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch, and tell the data set if it wants to know (`set_epoch`)."""
        self.epoch = epoch
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        return {"epoch": self.epoch, "batches": batches_done, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seed = state["seed"]
        self.set_epoch(state["epoch"])


def share_loaders(loaders: Any, rank: int, world_size: int, training: bool = False) -> Any:
    """A loader, or several by name, of which each process reads its share; one that we cannot divide is left as it is.

    A data set with fewer samples than there are processes stays whole as well. What a DistributedSampler divides for evaluation
    is divided anew: it gives some samples twice where the set does not divide.
    """
    if world_size == 1 or loaders is None:
        return loaders
    if isinstance(loaders, Mapping):
        return {name: share_loaders(loader, rank, world_size, training) for name, loader in loaders.items()}
    loader = loaders
    if type(loaders) is DataLoader:
        dealt = not training and type(loaders.sampler) is DistributedSampler
        loader = (_resumable(loaders, shuffle=False) if dealt else make_resumable(loaders)) or loaders
    if isinstance(loader, ResumableLoader):
        if loader.sampler.world_size == 1 and loader.sampler.length >= world_size:
            loader.sampler = replace(loader.sampler, rank=rank, world_size=world_size)
    elif training and rank == 0 and not _divided_already(loader):
        logging.getLogger("hookline").warning(
            "train_loader (%s) cannot be divided, so that each of the %d processes trains on all of it, unless it gives each its own "
            "part by itself: pass a DataLoader that is sequential or shuffled, or one with a DistributedSampler",
            type(loader).__name__,
            world_size,
        )
    return loader


def _divided_already(loader: Any) -> bool:
    batches = getattr(loader, "batch_sampler", None)
    return any(isinstance(sampler, DistributedSampler) for sampler in (getattr(loader, "sampler", None), getattr(batches, "sampler", None)))


def make_resumable(loader: DataLoader[Any], seed: int = 0) -> ResumableLoader | None:
    """The same loader made resumable, or None if its order is not simply sequential or shuffled.

    The seed is that of the loader's own generator, where it has one.
    """
    sampler = loader.sampler
    shuffle = type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(sampler.data_source)
    if not shuffle and type(sampler) is not SequentialSampler:
        return None
    return _resumable(loader, shuffle, seed if loader.generator is None else loader.generator.initial_seed())


def _resumable(loader: DataLoader[Any], shuffle: bool, seed: int = 0) -> ResumableLoader | None:
    """A loader of the same data in an order of ours; None if its batches are not simply one after the other."""
    if type(loader) is not DataLoader or type(loader.batch_sampler) is not BatchSampler or not loader.in_order:
        return None
    if not isinstance(loader.batch_size, int):
        return None
    names = ("pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "prefetch_factor", "persistent_workers")
    return ResumableLoader(
        loader.dataset,
        EpochSampler(len(loader.dataset), loader.batch_size, shuffle, seed, loader.drop_last),  # type: ignore[arg-type]
        loader.num_workers,
        None if loader.collate_fn is default_collate else loader.collate_fn,
        **{name: getattr(loader, name) for name in names},
    )


class _Plan:
    """The batch sampler of torch's DataLoader: it hands out what was put into it."""

    messages: Iterator[tuple[int, list[int]]] = iter(())

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        return self.messages


class _WorkerStart:
    """Shows the user's own data set to code in a worker that asks for it, and not the wrapper that torch was given."""

    def __init__(self, then: Callable[[int], None] | None) -> None:
        self._then = then

    def __call__(self, worker_id: int) -> None:
        info: Any = get_worker_info()
        object.__setattr__(info, "dataset", info.dataset.dataset)
        if self._then is not None:
            self._then(worker_id)


def _as_it_is(batch: Any) -> Any:
    return batch


def _guarded(iterator: Iterator[Any], valid: Callable[[], bool]) -> Iterator[Any]:
    for batch in iterator:
        yield batch
        if not valid():
            raise RuntimeError(
                "this loader was iterated anew before its last iteration was over, and its workers are persistent, so that they "
                "serve only the newest; set persistent_workers to false"
            )
