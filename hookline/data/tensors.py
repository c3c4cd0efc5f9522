"""A data set out of two files of tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset


@DATASETS.register("tensors")
class Tensors(ArrayDataset):
    """Inputs and targets out of two files, `.pt` (a saved tensor) or `.npy`.

    Types are made those that models and losses expect: bytes become numbers from 0 to 1, as images do, float64 becomes
    float32, and whole numbers as targets become int64. The number of classes is the highest such target plus one.
    """

    def __init__(self, inputs: str | Path, targets: str | Path) -> None:
        wanted, given = _read(Path(targets)), _read(Path(inputs))
        labels = not wanted.is_floating_point() and wanted.dtype != torch.bool
        super().__init__(
            given.float() if given.dtype == torch.float64 else given,
            wanted.long() if labels else wanted.float(),
            scale=1 / 255 if given.dtype == torch.uint8 else None,
            num_classes=int(wanted.max()) + 1 if labels and wanted.ndim == 1 and len(wanted) else None,
        )


def _read(path: Path) -> Tensor:
    """The tensor in a file; nothing in the file is executed."""
    if not path.exists():
        raise ValueError(f"there is no file {path} (looked for in {Path.cwd()})")
    if path.suffix == ".npy":
        return torch.from_numpy(np.load(path, allow_pickle=False))
    if path.suffix not in (".pt", ".pth"):
        raise ValueError(f"{path}: expected a .pt file with a tensor or a .npy file")
    tensor = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{path}: expected one tensor, found {type(tensor).__name__}; save with torch.save(tensor, path)")
    return tensor
