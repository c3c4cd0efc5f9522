"""MNIST and CIFAR-10, read from the files in which they are distributed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset

VAL_SAMPLES = 5000  # the last ones of the training files
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

Split = Literal["train", "val", "test"]


@DATASETS.register("mnist")
class MNIST(ArrayDataset):
    """Handwritten digits, 1x28x28, values from 0 to 1: 55,000 to train, 5,000 to validate, 10,000 to test.

    The validation split is the end of the training files. Reads the four `idx-ubyte` files, packed (`.gz`) or not, from
    `root` or `root/MNIST/raw`.
    """

    def __init__(self, root: str | Path = "data", split: Split = "train") -> None:
        _check_split("mnist", split)
        prefix = "t10k" if split == "test" else "train"
        names = [f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"]
        images, labels = (_read_idx(path) for path in _find("mnist", Path(root), "MNIST/raw", names, (".gz",)))
        part = _part("mnist", split, len(images))
        super().__init__(images[part].unsqueeze(1), labels[part].long(), scale=1 / 255, class_names=[str(digit) for digit in range(10)])


@DATASETS.register("cifar10")
class CIFAR10(ArrayDataset):
    """Photographs of ten classes, 3x32x32, values from 0 to 1: 45,000 to train, 5,000 to validate, 10,000 to test.

    The validation split is the end of the training files. Reads the binary version (`data_batch_1.bin` to
    `data_batch_5.bin`, `test_batch.bin`) from `root` or `root/cifar-10-batches-bin`. The python version is not read,
    because it is a pickle, which may execute anything.
    """

    def __init__(self, root: str | Path = "data", split: Split = "train") -> None:
        _check_split("cifar10", split)
        names = ["test_batch.bin"] if split == "test" else [f"data_batch_{number}.bin" for number in range(1, 6)]
        records = torch.cat([_read_cifar(path) for path in _find("cifar10", Path(root), "cifar-10-batches-bin", names)])
        records = records[_part("cifar10", split, len(records))]
        images = records[:, 1:].reshape(-1, 3, 32, 32)
        super().__init__(images, records[:, 0].long(), scale=1 / 255, class_names=CIFAR10_CLASSES)


def _check_split(dataset: str, split: str) -> None:
    if split not in ("train", "val", "test"):
        raise ValueError(f"{dataset}: split must be one of train, val, test, got {split!r}")


def _part(dataset: str, split: str, length: int) -> slice:
    if split == "test":
        return slice(None)
    if length <= VAL_SAMPLES:
        raise ValueError(f"{dataset}: the training files hold {length} samples, but the last {VAL_SAMPLES} of them are for validation")
    return slice(length - VAL_SAMPLES, None) if split == "val" else slice(length - VAL_SAMPLES)


def _find(dataset: str, root: Path, subfolder: str, names: list[str], endings: tuple[str, ...] = ()) -> list[Path]:
    """The paths of all files, or an error that says which are missing and where they belong."""
    places = (root, root / subfolder)
    found = {name: path for name in names for place in places for ending in (*endings, "") if (path := place / (name + ending)).is_file()}
    missing = [name for name in names if name not in found]
    if not missing:
        return [found[name] for name in names]
    packed = " (or with .gz at the end)" if endings else ""
    message = f"{dataset}: missing {', '.join(missing)}{packed}; put them into {places[0].absolute()} or {places[1].absolute()}"
    if any((place / "data_batch_1").is_file() for place in (root, root / "cifar-10-batches-py")):
        message += ". What is there is the python version, a pickle, which is not read: get the binary version"
    raise ValueError(message)


def _read_idx(path: Path) -> Tensor:
    """The bytes of an idx file in its shape: two zeros, the type (8: bytes), the number of dimensions, their sizes, the data."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if len(raw) < 4 or raw[:3] != b"\0\0\x08" or len(raw) < 4 + 4 * raw[3]:
        raise ValueError(f"{path}: not an idx file of bytes")
    dimensions = raw[3]
    shape = [int(size) for size in np.frombuffer(raw, ">u4", dimensions, offset=4)]
    data = np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions)
    if len(data) != np.prod(shape):
        raise ValueError(f"{path}: damaged, {len(data)} bytes of data for the shape {shape}")
    return torch.from_numpy(data.reshape(shape).copy())


def _read_cifar(path: Path) -> Tensor:
    data = np.fromfile(path, np.uint8)
    if len(data) == 0 or len(data) % 3073:
        raise ValueError(f"{path}: damaged, {len(data)} bytes is no multiple of 3,073 (a label and an image of 3x32x32)")
    return torch.from_numpy(data.reshape(-1, 3073))
