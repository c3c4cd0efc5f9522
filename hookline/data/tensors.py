"""A dataset from two files of tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hookline.checkpoint.pickles import load_plain
from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset
from hookline.errors import ConfigError


@DATASETS.register("tensors")
class Tensors(ArrayDataset):
    """Inputs and targets from two files, `.pt` (a saved tensor) or `.npy`.

    The types become those that models and losses expect: inputs of bytes are scaled to 0 to 1,
    float64 inputs become float32, and integer targets become int64. For such targets with one
    dimension, the number of classes is the highest plus one.

    Args:
        inputs: The file of the inputs.
        targets: The file of the targets.
    """

    def __init__(self, inputs: str | Path, targets: str | Path) -> None:
        labels = _read(Path(targets))
        features = _read(Path(inputs))
        are_bytes = features.dtype == torch.uint8
        if features.dtype == torch.float64:
            features = features.float()
        are_classes = not labels.is_floating_point() and labels.dtype != torch.bool
        num_classes = None
        if are_classes and labels.ndim == 1 and len(labels):
            num_classes = int(labels.max()) + 1
        super().__init__(
            features,
            labels.long() if are_classes else labels.float(),
            scale=1 / 255 if are_bytes else None,
            num_classes=num_classes,
        )


def _read(path: Path) -> Tensor:
    """Return the tensor in a file. No code in the file is executed."""
    if not path.exists():
        raise _file_error(f"there is no file {path} (working directory: {Path.cwd()})")
    if path.suffix == ".npy":
        return torch.from_numpy(np.load(path, allow_pickle=False))
    if path.suffix not in (".pt", ".pth"):
        raise _file_error(f"{path} must be a .pt file with a tensor or a .npy file")
    try:
        with open(path, "rb") as file:
            tensor = load_plain(file)
    except Exception as error:  # torch raises errors of many kinds for a damaged file
        raise _file_error(f"{path} cannot be read: it must hold one tensor") from error
    if not isinstance(tensor, Tensor):
        raise _file_error(
            f"{path} must hold one tensor, not a {type(tensor).__name__}; save it with "
            "torch.save(tensor, path)"
        )
    return tensor


def _file_error(message: str) -> ConfigError:
    return ConfigError(message, component="Tensors")
