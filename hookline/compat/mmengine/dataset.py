"""`mmengine.dataset`: samplers, collating, and a base for data sets."""

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
from hookline.compat.mmengine.registry import DATA_SAMPLERS, DATASETS, FUNCTIONS, TRANSFORMS
from hookline.compat.mmengine.structures import BaseDataElement

COLLATE_FUNCTIONS = FUNCTIONS


@DATA_SAMPLERS.register_module()
class DefaultSampler(Sampler[int]):
    """Each sample once an epoch, in an order that depends on the seed and the epoch alone; split over processes."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None, round_up: bool = True) -> None:
        self.rank, self.world_size = get_dist_info()
        self.dataset, self.shuffle, self.round_up = dataset, shuffle, round_up
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = 0
        own = len(dataset) if round_up else len(dataset) - self.rank
        self.num_samples = math.ceil(own / self.world_size)
        self.total_size = self.num_samples * self.world_size if round_up else len(dataset)

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        indices = (torch.randperm(count, generator=generator) if self.shuffle else torch.arange(count)).tolist()
        if self.round_up:
            indices = (indices * int(self.total_size / len(indices) + 1))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.world_size])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


@DATA_SAMPLERS.register_module()
class InfiniteSampler(Sampler[int]):
    """Samples without end, for training by iterations."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None) -> None:
        self.rank, self.world_size = get_dist_info()
        self.dataset, self.shuffle = dataset, shuffle
        self.seed = sync_random_seed() if seed is None else seed
        self.size = len(dataset)
        self.indices = itertools.islice(self._infinite_indices(), self.rank, None, self.world_size)

    def _infinite_indices(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield from (torch.randperm(self.size, generator=generator) if self.shuffle else torch.arange(self.size)).tolist()

    def __iter__(self) -> Iterator[int]:
        yield from self.indices

    def __len__(self) -> int:
        return self.size

    def set_epoch(self, epoch: int) -> None:
        """The order has no epochs."""


def worker_init_fn(worker_id: int, num_workers: int, rank: int, seed: int, disable_subprocess_warning: bool = False) -> None:
    """Seed a worker of a loader."""
    worker_seed = num_workers * rank + worker_id + seed
    np.random.seed(worker_seed)
    random.seed(worker_seed)
    torch.manual_seed(worker_seed)
    if disable_subprocess_warning and worker_id != 0:
        warnings.simplefilter("ignore")


def _collate(data_batch: Sequence[Any], leaf: Callable[[Any], Any]) -> Any:
    """Samples put together field by field; `leaf` says what becomes of the values of one field."""
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
        return type(first)({key: _collate([item[key] for item in data_batch], leaf) for key in first})  # type: ignore[call-arg]
    return leaf(data_batch)


@FUNCTIONS.register_module()  # type: ignore[untyped-decorator]
def pseudo_collate(data_batch: Sequence[Any]) -> Any:
    """Samples put together as lists; no tensors are stacked."""
    return _collate(data_batch, lambda values: values)


@FUNCTIONS.register_module()  # type: ignore[untyped-decorator]
def default_collate(data_batch: Sequence[Any]) -> Any:
    """Samples put together, tensors and numbers stacked."""
    return _collate(data_batch, lambda values: values if isinstance(values[0], BaseDataElement) else torch_collate(list(values)))  # type: ignore[no-untyped-call]


class Compose:
    """Transforms one after the other; None from one of them drops the sample."""

    def __init__(self, transforms: Sequence[Any] | None) -> None:
        self.transforms = [TRANSFORMS.build(each) if isinstance(each, dict) else each for each in transforms or ()]

    def __call__(self, data: dict[str, Any]) -> Any:
        for transform in self.transforms:
            data = transform(data)
            if data is None:
                return None
        return data


@DATASETS.register_module()
class BaseDataset(Dataset[Any]):
    """A data set from an annotation file in OpenMMLab's format: `{"metainfo": …, "data_list": […]}` as JSON or YAML."""

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
        self.data_prefix = {key: str(root / value) for key, value in ({"img_path": ""} if data_prefix is None else data_prefix).items()}
        self._metainfo = {**copy.deepcopy(self.METAINFO), **dict(metainfo or {})}
        self.data_root, self.filter_cfg, self._indices = data_root, filter_cfg, indices
        self.test_mode, self.max_refetch, self.data_list = test_mode, max_refetch, list[Any]()
        self.pipeline = Compose(pipeline)
        self._fully_initialized = False
        if not lazy_init:
            self.full_init()

    @property
    def metainfo(self) -> dict[str, Any]:
        return copy.deepcopy(self._metainfo)

    def full_init(self) -> None:
        """Read the annotations, unless that was done."""
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
        parsed = [self.parse_data_info(raw) for raw in annotations["data_list"]]
        return [item for each in parsed for item in (each if isinstance(each, list) else [each])]

    def parse_data_info(self, raw_data_info: dict[str, Any]) -> Any:
        for key, prefix in self.data_prefix.items():
            if key in raw_data_info:
                raw_data_info[key] = str(Path(prefix) / raw_data_info[key])
        return raw_data_info

    def filter_data(self) -> list[Any]:
        return self.data_list

    def get_data_info(self, idx: int) -> dict[str, Any]:
        """What is known of a sample, before its transforms."""
        self.full_init()
        return {**copy.deepcopy(self.data_list[idx]), "sample_idx": idx if idx >= 0 else len(self) + idx}

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
        raise Exception(f"Cannot find valid image after {self.max_refetch}! Please check your image path and pipeline")

    def __len__(self) -> int:
        self.full_init()
        return len(self.data_list)


@DATASETS.register_module()
class ConcatDataset(TorchConcatDataset[Any]):
    """Several data sets in a row; its metainfo is the first one's."""

    def __init__(self, datasets: Sequence[Any], lazy_init: bool = False, ignore_keys: Any = None) -> None:
        super().__init__([DATASETS.build(each) if isinstance(each, dict) else each for each in datasets])

    @property
    def metainfo(self) -> Any:
        return getattr(self.datasets[0], "metainfo", None)


@DATASETS.register_module()
class RepeatDataset(Dataset[Any]):
    """A data set several times over."""

    def __init__(self, dataset: Any, times: int, lazy_init: bool = False) -> None:
        self.dataset = DATASETS.build(dataset) if isinstance(dataset, dict) else dataset
        self.times = times

    @property
    def metainfo(self) -> Any:
        return getattr(self.dataset, "metainfo", None)

    def __getitem__(self, idx: int) -> Any:
        return self.dataset[idx % len(self.dataset)]

    def __len__(self) -> int:
        return self.times * len(self.dataset)


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
