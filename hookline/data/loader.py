"""Loaders that can resume at any batch of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from hookline.data.fetch import Fetch
from hookline.data.options import LoaderOptions, check_loader, find_function
from hookline.data.protocols import is_epoch_aware
from hookline.data.sampler import EpochSampler, ShuffleMethod
from hookline.data.seeding import epoch_key
from hookline.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Unpack

BatchPlan = tuple[int, list[int]]  # the epoch's key and the indices of the samples


def make_loader(
    dataset: Dataset[Any],
    batch_size: int = 32,
    shuffle: bool = False,
    num_workers: int = 0,
    seed: int = 0,
    drop_last: bool = False,
    *,
    shuffle_method: ShuffleMethod = "auto",
    rank: int = 0,
    world_size: int = 1,
    **options: Unpack[LoaderOptions],
) -> ResumableLoader | StreamLoader:
    """Make a loader whose batches depend on seed and epoch alone.

    Args:
        dataset: The dataset. An IterableDataset is read in its own order and cannot be resumed in
            the middle of an epoch.
        batch_size: The batch size of one rank.
        shuffle: Whether the order is random.
        num_workers: The number of worker processes. It does not change the batches.
        seed: The seed of the order and of random numbers that the dataset draws.
        drop_last: Whether a last batch that is not full is dropped.
        shuffle_method: How a random order is made: `randperm` draws it with `torch.randperm`,
            `feistel` computes it from the position, in constant memory. `auto` is `feistel` for
            more than 2**24 samples, else `randperm`.
        rank: The rank of this process.
        world_size: The number of ranks, each of which reads its part of every batch.
        options: Options of torch's DataLoader: `collate_fn` (also as a dotted path), `pin_memory`,
            `timeout`, `worker_init_fn`, `multiprocessing_context`, `prefetch_factor` and
            `persistent_workers`.

    Raises:
        ConfigError: With all problems of the options.
    """
    own = {
        "batch_size": batch_size,
        "shuffle": shuffle,
        "num_workers": num_workers,
        "seed": seed,
        "drop_last": drop_last,
        "shuffle_method": shuffle_method,
    }
    passed_on: dict[str, Any] = {**options}
    problems = check_loader({**own, **passed_on})
    if problems:
        raise ConfigError(problems)
    if passed_on.get("collate_fn") is not None:
        passed_on["collate_fn"] = find_function(passed_on["collate_fn"])
    if isinstance(dataset, IterableDataset):
        if shuffle:
            message = "'shuffle' must be false for an IterableDataset, which has its own order"
            raise ConfigError(message, component="loader", parameter="shuffle", value=shuffle)
        passed_on.update(batch_size=batch_size, num_workers=num_workers, drop_last=drop_last)
        return StreamLoader(dataset, seed, **passed_on)
    length = len(dataset)  # type: ignore[arg-type]
    if length == 0:
        raise ConfigError("the dataset is empty", component=type(dataset).__name__)
    sampler = EpochSampler(
        length, batch_size, shuffle, seed, drop_last, rank, world_size, shuffle_method
    )
    return ResumableLoader(dataset, sampler, num_workers, **passed_on)


class ResumableLoader:
    """A loader whose order depends on seed and epoch alone, and which begins at any sample.

    Iterating does not change the loader, so that a hook may iterate over it as well. The owner of
    the training loop knows the position in the epoch and passes it to `state_dict`. `iter(loader)`
    begins at the epoch's first batch; after `load_state_dict`, and until the next `set_epoch`, at
    the first batch that was not consumed.

    Args:
        dataset: The dataset.
        sampler: Computes the samples of each batch.
        num_workers: The number of worker processes.
        collate_fn: Makes a batch from a list of samples; torch's function by default.
        worker_init_fn: Called with its number in each worker process.
        options: Further options of torch's DataLoader.
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
        self.dataset = dataset
        self.sampler = sampler
        self.num_workers = num_workers
        self.epoch = 0
        self._start = 0  # the position at which `iter(loader)` begins
        self._fetch = Fetch(dataset, collate_fn)
        self._in_process = num_workers == 0 and not options.get("pin_memory")
        self._planned = _PlannedBatches()
        self._newest: object = None
        self._workers: DataLoader[Any] = DataLoader(
            self._fetch,
            batch_sampler=self._planned,  # type: ignore[arg-type]  # its items are for Fetch
            num_workers=num_workers,
            collate_fn=_identity,
            worker_init_fn=_WorkerInit(worker_init_fn),
            generator=torch.Generator(),  # else DataLoader draws from the global generator
            **options,
        )

    @property
    def batch_size(self) -> int:
        """The batch size of one rank."""
        return self.sampler.batch_size

    @property
    def batches_done(self) -> int:
        """Batches of the epoch, of today's size, before the one at which `iter(loader)` begins."""
        return len(self) - self.sampler.count(self._start)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return self.sampler.count()

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(self._start)

    def whole_epoch(self) -> Iterator[Any]:
        """Return all batches of the current epoch, even if it was resumed in the middle."""
        return self._iterate(0)

    def last_share(self) -> float:
        """Return this rank's part of the epoch's last batch, relative to an even division of it."""
        return self.sampler.last_share(self._start)

    def last_weight(self) -> float:
        """Return the size of the epoch's last batch over all ranks, relative to a full one."""
        return self.sampler.last_weight(self._start)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        self._start = 0

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the position after a number of batches of the epoch.

        Batches that workers have read ahead do not count.
        """
        before = self.batches_done
        if batches_done >= before:
            samples = self.sampler.after(self._start, batches_done - before)
        else:
            samples = self.sampler.after(0, batches_done)
        return {
            "epoch": self.epoch,
            "samples": samples,
            "seed": self.sampler.seed,
            "shuffle": self.sampler.shuffle,
            "shuffle_method": self.sampler.find_method(),
            "length": self.sampler.length,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position and use its seed from now on, because the epoch's order depends on it.

        The shuffle method of the state is used as well, if that of the loader is `auto`.

        Raises:
            ConfigError: If the position is inside an epoch of other data, or in another order.
        """
        sampler = self.sampler
        method = state.get("shuffle_method", "randperm")  # the only one of release 0.1
        if method not in get_args(ShuffleMethod):
            raise ConfigError(
                f"the order of the data was made with {method!r}, which this release does not "
                "know; resume with the release that wrote the checkpoint, or a newer one",
                component="train_loader",
                parameter="shuffle_method",
                value=method,
            )
        if state["samples"]:
            _check_unchanged("length", state, state["length"], sampler.length)
            _check_unchanged("shuffle", state, state["shuffle"], sampler.shuffle)
            if sampler.shuffle_method != "auto":
                _check_unchanged("shuffle_method", state, method, sampler.shuffle_method)
        if sampler.shuffle_method != "auto" or state["length"] != sampler.length:
            method = sampler.shuffle_method
        self.sampler = replace(sampler, seed=state["seed"], shuffle_method=method)
        self.epoch = state["epoch"]
        self._start = state["samples"]

    def _iterate(self, start: int) -> Iterator[Any]:
        key = epoch_key(self.sampler.seed, self.epoch)
        batches = self.sampler.batches(self.epoch, start)
        if self._in_process:  # DataLoader adds about 60 µs to every batch
            return map(partial(self._fetch.batch, key), batches)
        self._planned.plans = ((key, batch.tolist()) for batch in batches)
        iterator = iter(self._workers)
        if not self._workers.persistent_workers:
            return iterator
        # Persistent workers serve one iterator: a second one would get batches of the first.
        token = object()
        self._newest = token
        return _check_each(iterator, lambda: self._newest is token)


def _check_unchanged(name: str, state: Mapping[str, Any], before: Any, now: Any) -> None:
    if before != now:
        raise ConfigError(
            f"cannot continue at sample {state['samples']} of epoch {state['epoch'] + 1}: "
            f"{name!r} was {before} and is now {now}; restore it, or start from the weights alone",
            component="train_loader",
            parameter=name,
        )


class StreamLoader:
    """A loader of an IterableDataset, in the dataset's own order.

    Args:
        dataset: The dataset. Its method `set_epoch` is called, if it has one.
        seed: The seed from which the seeds of the workers are drawn.
        options: Options of torch's DataLoader, `batch_size` among them.
    """

    resumable = False
    not_resumable: str | None = (
        "an IterableDataset has no positions; after an interruption, the epoch is read again from "
        "its beginning and the batches already used are skipped"
    )
    batches_done = 0

    def __init__(self, dataset: IterableDataset[Any], seed: int = 0, **options: Any) -> None:
        self.dataset = dataset
        self.seed = seed
        self.epoch = 0
        self.batch_size: int = options["batch_size"]
        self._generator = torch.Generator()
        self._loader: DataLoader[Any] = DataLoader(dataset, generator=self._generator, **options)

    def __len__(self) -> int:
        """Return the number of batches; raise TypeError if the dataset has no length."""
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        # DataLoader draws the seeds of the workers from this generator.
        self._generator.manual_seed(epoch_key(self.seed, self.epoch))
        return iter(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        dataset: object = self.dataset
        if is_epoch_aware(dataset):
            dataset.set_epoch(epoch)

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the epoch and the number of batches that were read."""
        return {"epoch": self.epoch, "batches": batches_done, "seed": self.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the beginning of the epoch of a state."""
        self.seed = state["seed"]
        self.set_epoch(state["epoch"])


class _PlannedBatches:
    """The batch sampler of torch's DataLoader: yields the plans of the current iteration."""

    plans: Iterator[BatchPlan] = iter(())

    def __iter__(self) -> Iterator[BatchPlan]:
        return self.plans


class _WorkerInit:
    """Shows the user's dataset, and not Fetch, to code that calls `get_worker_info()`."""

    def __init__(self, then: Callable[[int], None] | None) -> None:
        self._then = then

    def __call__(self, worker_id: int) -> None:
        info: Any = get_worker_info()
        object.__setattr__(info, "dataset", info.dataset.dataset)
        if self._then is not None:
            self._then(worker_id)


def _identity(batch: Any) -> Any:
    return batch


def _check_each(iterator: Iterator[Any], is_valid: Callable[[], bool]) -> Iterator[Any]:
    for batch in iterator:
        yield batch
        if not is_valid():
            raise RuntimeError(
                "a second iteration of this loader began before the first was over, and its "
                "persistent workers serve only the newest; set persistent_workers to false"
            )
