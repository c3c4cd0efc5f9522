"""MNIST and CIFAR-10, read from the files in which they are distributed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset
from hookline.errors import ConfigError, Suggestion, require_choice

VAL_SAMPLES = 5000  # at the end of the training files
CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
CIFAR10_RECORD = 1 + 3 * 32 * 32  # bytes of a label and an image

Split = Literal["train", "val", "test"]
SPLITS: tuple[str, ...] = get_args(Split)


@DATASETS.register("mnist")
class MNIST(ArrayDataset):
    """Images of handwritten digits, 1x28x28, with values from 0 to 1.

    There are 55,000 images for training, 5,000 for validation and 10,000 for the test. The
    validation images are the last ones of the training files.

    Args:
        root: The directory with the four `idx-ubyte` files, or the one above `MNIST/raw` with them.
            They may be compressed (`.gz`).
        split: The part of the data.
    """

    def __init__(self, root: str | Path = "data", split: Split = "train") -> None:
        require_choice("MNIST", "split", split, SPLITS)
        prefix = "t10k" if split == "test" else "train"
        names = [f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"]
        image_file, label_file = _find_files("MNIST", Path(root), "MNIST/raw", names, ("", ".gz"))
        images = _read_idx(image_file)
        part = _slice_of("MNIST", split, len(images))
        super().__init__(
            images[part].unsqueeze(1),
            _read_idx(label_file)[part].long(),
            scale=1 / 255,
            class_names=[str(digit) for digit in range(10)],
        )


@DATASETS.register("cifar10")
class CIFAR10(ArrayDataset):
    """Photos of ten classes, 3x32x32, with values from 0 to 1.

    There are 45,000 images for training, 5,000 for validation and 10,000 for the test. The
    validation images are the last ones of the training files. Only the binary version is read:
    the Python version is a pickle, which may execute code.

    Args:
        root: The directory with `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`, or
            the one above `cifar-10-batches-bin` with them.
        split: The part of the data.
    """

    def __init__(self, root: str | Path = "data", split: Split = "train") -> None:
        require_choice("CIFAR10", "split", split, SPLITS)
        names = ["test_batch.bin"]
        if split != "test":
            names = [f"data_batch_{number}.bin" for number in range(1, 6)]
        files = _find_files("CIFAR10", Path(root), "cifar-10-batches-bin", names)
        records = torch.cat([_read_cifar(file) for file in files])
        records = records[_slice_of("CIFAR10", split, len(records))]
        super().__init__(
            records[:, 1:].reshape(-1, 3, 32, 32),
            records[:, 0].long(),
            scale=1 / 255,
            class_names=CIFAR10_CLASSES,
        )


def _slice_of(dataset: str, split: str, length: int) -> slice:
    """Return the samples of a split in files with a number of samples."""
    if split == "test":
        return slice(None)
    train_samples = length - VAL_SAMPLES
    if train_samples <= 0:
        message = (
            f"the training files hold {length} samples, but the last {VAL_SAMPLES} of them are for "
            "validation"
        )
        raise ConfigError(message, component=dataset)
    return slice(train_samples, None) if split == "val" else slice(train_samples)


def _find_files(
    dataset: str, root: Path, subdirectory: str, names: list[str], endings: tuple[str, ...] = ("",)
) -> list[Path]:
    """Return the paths of all files; raise ConfigError with those that are missing."""
    directories = (root, root / subdirectory)
    found = []
    missing = []
    for name in names:
        candidates = [place / (name + ending) for place in directories for ending in endings]
        existing = [path for path in candidates if path.is_file()]
        if existing:
            found.append(existing[0])
        else:
            missing.append(name)
    if not missing:
        return found
    advice = f"put them into {directories[0].absolute()} or {directories[1].absolute()}"
    python_version = (root / "data_batch_1", root / "cifar-10-batches-py" / "data_batch_1")
    if any(path.is_file() for path in python_version):
        advice = "download the binary version; the Python version is a pickle and is not read"
    compressed = " (or with .gz at the end)" if ".gz" in endings else ""
    message = f"missing {', '.join(missing)}{compressed}"
    raise ConfigError(message, component=dataset, suggestion=Suggestion(advice=advice))


def _read_idx(path: Path) -> Tensor:
    """Read an idx file: two zeros, the type (8: bytes), the number of dimensions, sizes, data."""
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    if len(raw) < 4 or raw[:3] != b"\0\0\x08" or len(raw) < 4 + 4 * raw[3]:
        raise ConfigError(f"{path} is not an idx file of bytes", component="MNIST")
    dimensions = raw[3]
    shape = [int(size) for size in np.frombuffer(raw, ">u4", dimensions, offset=4)]
    data = np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions)
    if len(data) != np.prod(shape):
        message = f"{path} is damaged: {len(data)} bytes of data for the shape {shape}"
        raise ConfigError(message, component="MNIST")
    return torch.from_numpy(data.reshape(shape).copy())


def _read_cifar(path: Path) -> Tensor:
    data = np.fromfile(path, np.uint8)
    if len(data) == 0 or len(data) % CIFAR10_RECORD:
        message = (
            f"{path} is damaged: {len(data)} bytes is not a multiple of {CIFAR10_RECORD:,} (a "
            "label and an image of 3x32x32)"
        )
        raise ConfigError(message, component="CIFAR10")
    return torch.from_numpy(data.reshape(-1, CIFAR10_RECORD))
