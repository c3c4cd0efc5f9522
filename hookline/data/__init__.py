"""Datasets by name, and seeded and resumable loading."""

from __future__ import annotations

from typing import Any

from torch.utils.data import Dataset

from hookline.data.arrays import ArrayDataset
from hookline.data.combined import CombinedLoader
from hookline.data.info import DataInfo, describe
from hookline.data.loader import ResumableLoader, StreamLoader, make_loader
from hookline.data.replacement import make_resumable, share_loaders
from hookline.data.sampler import EpochSampler
from hookline.data.training import prepare_training_data
from hookline.parts import PARTS
from hookline.registry import Registry

__all__ = [
    "DATASETS",
    "ArrayDataset",
    "CombinedLoader",
    "DataInfo",
    "EpochSampler",
    "ResumableLoader",
    "StreamLoader",
    "describe",
    "make_loader",
    "make_resumable",
    "prepare_training_data",
    "share_loaders",
]

DATASETS: Registry[Dataset[Any]] = Registry(
    "dataset", Dataset, home="hookline.data.datasets", factories=True, parts=PARTS
)
