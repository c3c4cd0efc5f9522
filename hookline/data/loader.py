"""Loaders that can resume at any batch of an epoch."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast, get_args

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from hookline.data.dataset_check import check_dataset
from hookline.data.fetch import Fetch
from hookline.data.options import LoaderOptions, check_loader, find_function, own_collate
from hookline.data.sampler import EpochSampler, ShuffleMethod
from hookline.data.seeding import epoch_key
from hookline.data.weights import SampleWeights, find_weights
from hookline.data.worker_pool import WorkerPool
from hookline.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Unpack


def make_loader(
    dataset: Dataset[Any] | Sequence[Any],
    batch_size: int = 32,
    shuffle: bool = False,
    num_workers: int = 0,
    seed: int | None = None,
    drop_last: bool = False,
    *,
    shuffle_method: ShuffleMethod = "auto",
    sample_weights: SampleWeights | None = None,
    rank: int = 0,
    world_size: int = 1,
    **options: Unpack[LoaderOptions],
) -> ResumableLoader | StreamLoader:
    """Make a loader whose batches depend on seed and epoch alone.

    Args:
        dataset: The dataset, or another sequence of samples. An IterableDataset is read in its own
            order; one with `state_dict` and `load_state_dict` resumes at its own position.
        batch_size: The batch size of one rank.
        shuffle: Whether the order is random.
        num_workers: The number of worker processes. It does not change the batches.
        seed: The seed of the order and of random numbers that the dataset draws. None uses the
            `seed` of the Runner that reads the loader, or 0.
        drop_last: Whether a last batch that is not full is dropped.
        shuffle_method: How a random order is made: `randperm` draws it with `torch.randperm`,
            `feistel` computes it from the position, in constant memory. `auto` is `feistel` for
            more than 2**24 samples, else `randperm`.
        sample_weights: Draw the samples of an epoch with replacement: with one weight per sample, a
            function of the dataset that returns them (also as a dotted path), or `balanced`, with
            which all classes are equally likely.
        rank: The rank of this process.
        world_size: The number of ranks, each of which reads its part of every batch.
        options: Options of torch's DataLoader: `collate_fn` (also as a dotted path; by default the
            `collate_fn` of the dataset, or else torch's), `pin_memory`, `timeout`,
            `worker_init_fn`, `multiprocessing_context`, `prefetch_factor` and `persistent_workers`.

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
        "sample_weights": sample_weights,
    }
    passed_on: dict[str, Any] = {**options}
    problems = check_loader({**own, **passed_on})
    if problems:
        raise ConfigError(problems)
    given = passed_on.get("collate_fn")
    passed_on["collate_fn"] = own_collate(dataset) if given is None else find_function(given)
    check_dataset(dataset)
    if isinstance(dataset, IterableDataset):
        for name, value in (("shuffle", shuffle), ("sample_weights", sample_weights)):
            if value is not None and value is not False:
                message = f"{name!r} cannot be set for an IterableDataset, which has its own order"
                raise ConfigError(message, component="loader", parameter=name, value=value)
        passed_on.update(batch_size=batch_size, num_workers=num_workers, drop_last=drop_last)
        return StreamLoader(dataset, seed, **passed_on)
    length = len(dataset)  # type: ignore[arg-type]
    if length == 0:
        raise ConfigError("the dataset is empty", component=type(dataset).__name__)
    sampler = EpochSampler(
        length, batch_size, shuffle, seed or 0, drop_last, rank, world_size, shuffle_method
    )
    if sample_weights is not None:
        sampler = replace(sampler, weights=find_weights(dataset, sample_weights))
    passed_on["has_own_seed"] = seed is not None
    return ResumableLoader(cast("Dataset[Any]", dataset), sampler, num_workers, **passed_on)


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
        has_own_seed: Whether the sampler's seed was given, so that `set_default_seed` keeps it.
        options: Further options of torch's DataLoader.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        sampler: EpochSampler,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        worker_init_fn: Callable[[int], None] | None = None,
        has_own_seed: bool = True,
        **options: Any,
    ) -> None:
        self.dataset = dataset
        self.sampler = sampler
        self.num_workers = num_workers
        self.has_own_seed = has_own_seed
        self.epoch = 0
        self._start = 0  # the position at which `iter(loader)` begins
        self._fetch = Fetch(dataset, collate_fn)
        self._in_process = num_workers == 0 and not options.get("pin_memory")
        self._workers = WorkerPool(self._fetch, num_workers, worker_init_fn, **options)

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

    def set_default_seed(self, seed: int) -> None:
        """Use a seed from now on, unless the loader was made with one."""
        if not self.has_own_seed:
            self.sampler = replace(self.sampler, seed=seed)

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
        state = {
            "epoch": self.epoch,
            "samples": samples,
            "seed": self.sampler.seed,
            "shuffle": self.sampler.shuffle,
            "shuffle_method": self.sampler.find_method(),
            "length": self.sampler.length,
        }
        checksum = self._weights_checksum()
        if checksum is not None:
            state["weights"] = checksum
        return state

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
            checksum = self._weights_checksum()
            _check_unchanged("sample_weights", state, state.get("weights"), checksum)
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
        positions: Iterator[range | None] = repeat(None)
        if self.sampler.weights is not None:  # a sample may come twice, with other random numbers
            positions = self.sampler.positions(start)
        if self._in_process:  # DataLoader adds about 60 µs to every batch
            return map(partial(self._fetch.batch, key), batches, positions)
        numbered = zip(batches, positions, strict=False)
        plans = ((key, batch.tolist(), places) for batch, places in numbered)
        return self._workers.read(plans, key)

    def _weights_checksum(self) -> int | None:
        weights = self.sampler.weights
        return None if weights is None else zlib.crc32(weights.numpy().tobytes())


def _check_unchanged(name: str, state: Mapping[str, Any], before: Any, now: Any) -> None:
    if before != now:
        raise ConfigError(
            f"cannot continue at sample {state['samples']} of epoch {state['epoch'] + 1}: "
            f"{name!r} was {before} and is now {now}; restore it, or start from the weights alone",
            component="train_loader",
            parameter=name,
        )


class StreamLoader(DataLoader[Any]):
    """A loader of an IterableDataset, in the dataset's own order.

    Args:
        dataset: The dataset.
        seed: The seed from which the seeds of the workers are drawn. None is the seed of the Runner
            that reads the loader, or 0.
        options: Options of torch's DataLoader.
    """

    def __init__(
        self, dataset: IterableDataset[Any], seed: int | None = None, **options: Any
    ) -> None:
        super().__init__(dataset, generator=torch.Generator(), **options)
        self.has_own_seed = seed is not None
        self.seed = seed or 0
        self.epoch = 0

    def __iter__(self) -> Any:
        # DataLoader draws the seeds of the workers from this generator.
        self.generator.manual_seed(epoch_key(self.seed, self.epoch))
        return super().__iter__()

    def set_epoch(self, epoch: int) -> None:
        """Use the seeds of an epoch."""
        self.epoch = epoch

    def set_default_seed(self, seed: int) -> None:
        """Use a seed from now on, unless the loader was made with one."""
        if not self.has_own_seed:
            self.seed = seed
