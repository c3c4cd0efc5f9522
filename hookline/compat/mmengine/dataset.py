"""`mmengine.dataset`: samplers, collate functions and base classes of data sets."""

from __future__ import annotations

import copy
import itertools
import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch.utils.data import ConcatDataset as TorchConcatDataset
from torch.utils.data import Dataset, Sampler
from torch.utils.data._utils.collate import default_collate as torch_collate

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.dist import get_dist_info, sync_random_seed
from hookline.compat.mmengine.fileio import load
from hookline.compat.mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    FUNCTIONS,
    TRANSFORMS,
    Registry,
)
from hookline.compat.mmengine.structures import BaseDataElement

COLLATE_FUNCTIONS = FUNCTIONS


@DATA_SAMPLERS.register_module()
class DefaultSampler(Sampler[int]):
    """Yields each sample once an epoch, split over the ranks.

    The order depends only on the seed and the epoch.

    Args:
        dataset: The data set.
        shuffle: Shuffle the samples.
        seed: The seed of the order; drawn at random by default, the same on all ranks.
        round_up: Repeat samples so that all ranks have the same number.
    """

    def __init__(
        self, dataset: Sized, shuffle: bool = True, seed: int | None = None, round_up: bool = True
    ) -> None:
        self.rank, self.world_size = get_dist_info()
        self.dataset = dataset
        self.shuffle = shuffle
        self.round_up = round_up
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = 0
        if round_up:
            self.num_samples = math.ceil(len(dataset) / self.world_size)
            self.total_size = self.num_samples * self.world_size
        else:
            self.num_samples = math.ceil((len(dataset) - self.rank) / self.world_size)
            self.total_size = len(dataset)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        indices = _order(len(self.dataset), self.shuffle, generator)
        if self.round_up:
            indices = (indices * int(self.total_size / len(indices) + 1))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.world_size])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


@DATA_SAMPLERS.register_module()
class InfiniteSampler(Sampler[int]):
    """Yields samples without end, for training by iterations."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None) -> None:
        self.rank, self.world_size = get_dist_info()
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = sync_random_seed() if seed is None else seed
        self.size = len(dataset)
        self.indices = itertools.islice(self._infinite_indices(), self.rank, None, self.world_size)

    def _infinite_indices(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield from _order(self.size, self.shuffle, generator)

    def __iter__(self) -> Iterator[int]:
        yield from self.indices

    def __len__(self) -> int:
        return self.size

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: the order has no epochs."""


def _order(count: int, shuffle: bool, generator: torch.Generator) -> list[int]:
    if shuffle:
        return torch.randperm(count, generator=generator).tolist()
    return list(range(count))


def worker_init_fn(
    worker_id: int, num_workers: int, rank: int, seed: int, disable_subprocess_warning: bool = False
) -> None:
    """Seed a worker process of a loader."""
    worker_seed = num_workers * rank + worker_id + seed
    np.random.seed(worker_seed)
    random.seed(worker_seed)
    torch.manual_seed(worker_seed)
    if disable_subprocess_warning and worker_id != 0:
        warnings.simplefilter("ignore")


def _collate(data_batch: Sequence[Any], leaf: Callable[[Any], Any]) -> Any:
    """Combine samples field by field; `leaf` combines the values of one field."""
    first = data_batch[0]
    if isinstance(first, (str, bytes)):
        return data_batch
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(_collate(values, leaf) for values in zip(*data_batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in data_batch):
            raise RuntimeError("each item in list of batch should be of equal size")
        parts = [_collate(values, leaf) for values in zip(*data_batch, strict=True)]
        return parts if isinstance(first, tuple) else type(first)(parts)  # type: ignore[call-arg]
    if isinstance(first, Mapping):
        fields = {key: _collate([item[key] for item in data_batch], leaf) for key in first}
        return type(first)(fields)  # type: ignore[call-arg]
    return leaf(data_batch)


@FUNCTIONS.register_module()  # type: ignore[untyped-decorator]
def pseudo_collate(data_batch: Sequence[Any]) -> Any:
    """Combine samples to lists, without stacking tensors."""
    return _collate(data_batch, lambda values: values)


@FUNCTIONS.register_module()  # type: ignore[untyped-decorator]
def default_collate(data_batch: Sequence[Any]) -> Any:
    """Combine samples, and stack tensors and numbers."""
    return _collate(data_batch, _stack)


def _stack(values: Sequence[Any]) -> Any:
    if isinstance(values[0], BaseDataElement):
        return values
    return torch_collate(list(values))  # type: ignore[no-untyped-call]


class Compose:
    """Applies transforms in order; if one of them returns None, the sample is dropped."""

    def __init__(self, transforms: Sequence[Any] | None) -> None:
        self.transforms = [_build(TRANSFORMS, transform) for transform in transforms or ()]

    def __call__(self, data: dict[str, Any]) -> Any:
        for transform in self.transforms:
            data = transform(data)
            if data is None:
                return None
        return data


@DATASETS.register_module()
class BaseDataset(Dataset[Any]):
    """A data set from an annotation file in OpenMMLab's format.

    The file is JSON or YAML: `{"metainfo": …, "data_list": […]}`.
    """

    METAINFO: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        ann_file: str | None = "",
        metainfo: Any = None,
        data_root: str | None = "",
        data_prefix: dict[str, str] | None = None,
        filter_cfg: dict[str, Any] | None = None,
        indices: int | Sequence[int] | None = None,
        serialize_data: bool = True,
        pipeline: Sequence[Any] = (),
        test_mode: bool = False,
        lazy_init: bool = False,
        max_refetch: int = 1000,
    ) -> None:
        root = Path(data_root or "")
        self.ann_file = str(root / ann_file) if ann_file else ann_file
        prefixes = {"img_path": ""} if data_prefix is None else data_prefix
        self.data_prefix = {key: str(root / value) for key, value in prefixes.items()}
        self._metainfo = {**copy.deepcopy(self.METAINFO), **dict(metainfo or {})}
        self.data_root = data_root
        self.filter_cfg = filter_cfg
        self._indices = indices
        self.test_mode = test_mode
        self.max_refetch = max_refetch
        self.data_list: list[Any] = []
        self.pipeline = Compose(pipeline)
        self._fully_initialized = False
        if not lazy_init:
            self.full_init()

    @property
    def metainfo(self) -> dict[str, Any]:
        return copy.deepcopy(self._metainfo)

    def full_init(self) -> None:
        """Read the annotations, unless they have been read."""
        if self._fully_initialized:
            return
        self.data_list = self.load_data_list()
        self.data_list = self.filter_data()
        if self._indices is not None:
            chosen = range(self._indices) if isinstance(self._indices, int) else self._indices
            self.data_list = [self.data_list[index] for index in chosen]
        self._fully_initialized = True

    def load_data_list(self) -> list[Any]:
        annotations = load(self.ann_file or "")
        self._metainfo = {**annotations["metainfo"], **self._metainfo}
        data_list = []
        for raw in annotations["data_list"]:
            parsed = self.parse_data_info(raw)
            if isinstance(parsed, list):
                data_list.extend(parsed)
            else:
                data_list.append(parsed)
        return data_list

    def parse_data_info(self, raw_data_info: dict[str, Any]) -> Any:
        for key, prefix in self.data_prefix.items():
            if key in raw_data_info:
                raw_data_info[key] = str(Path(prefix) / raw_data_info[key])
        return raw_data_info

    def filter_data(self) -> list[Any]:
        return self.data_list

    def get_data_info(self, idx: int) -> dict[str, Any]:
        """Return the annotations of a sample, before its transforms."""
        self.full_init()
        info: dict[str, Any] = copy.deepcopy(self.data_list[idx])
        info["sample_idx"] = idx if idx >= 0 else len(self) + idx
        return info

    def prepare_data(self, idx: int) -> Any:
        return self.pipeline(self.get_data_info(idx))

    def __getitem__(self, idx: int) -> Any:
        for _ in range(self.max_refetch + 1):
            data = self.prepare_data(idx)
            if data is not None:
                return data
            if self.test_mode:
                raise Exception("Test time pipeline should not get `None` data_sample")
            idx = int(np.random.randint(0, len(self)))
        raise Exception(
            f"Cannot find valid image after {self.max_refetch}! "
            "Please check your image path and pipeline"
        )

    def __len__(self) -> int:
        self.full_init()
        return len(self.data_list)


@DATASETS.register_module()
class ConcatDataset(TorchConcatDataset[Any]):
    """A concatenation of data sets; its metainfo is that of the first one."""

    def __init__(
        self, datasets: Sequence[Any], lazy_init: bool = False, ignore_keys: Any = None
    ) -> None:
        super().__init__([_build(DATASETS, dataset) for dataset in datasets])

    @property
    def metainfo(self) -> Any:
        return getattr(self.datasets[0], "metainfo", None)


@DATASETS.register_module()
class RepeatDataset(Dataset[Any]):
    """A data set that is repeated several times."""

    def __init__(self, dataset: Any, times: int, lazy_init: bool = False) -> None:
        self.dataset = _build(DATASETS, dataset)
        self.times = times

    @property
    def metainfo(self) -> Any:
        return getattr(self.dataset, "metainfo", None)

    def __getitem__(self, idx: int) -> Any:
        return self.dataset[idx % len(self.dataset)]

    def __len__(self) -> int:
        return self.times * len(self.dataset)


def _build(registry: Registry, given: Any) -> Any:
    """Build an object from a config; return anything else."""
    return registry.build(given) if isinstance(given, dict) else given


__all__ = [
    "COLLATE_FUNCTIONS",
    "BaseDataset",
    "Compose",
    "ConcatDataset",
    "DefaultSampler",
    "InfiniteSampler",
    "RepeatDataset",
    "default_collate",
    "pseudo_collate",
    "worker_init_fn",
]
__getattr__ = not_covered(__name__, __all__)
