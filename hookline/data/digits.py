"""The 1,797 handwritten digits that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset

SPLITS = {"train": slice(0, 1257), "val": slice(1257, 1527), "test": slice(1527, 1797), "all": slice(None)}


@DATASETS.register("digits")
class Digits(ArrayDataset):
    """Handwritten digits, 8x8, values from 0 to 1: 1,257 to train, 270 to validate and 270 to test, stratified and fixed.

    `augment` shifts each image by up to one pixel in each direction, drawn from torch's random numbers; validation and test
    images stay as they are, because one config builds all splits. The data are "Optical Recognition of Handwritten
    Digits" (E. Alpaydin, C. Kaynak; UCI; CC BY 4.0).
    """

    def __init__(self, split: Literal["train", "val", "test", "all"] = "train", augment: bool = False) -> None:
        if split not in SPLITS:
            raise ValueError(f"digits: split must be one of {', '.join(SPLITS)}, got {split!r}")
        with np.load(Path(__file__).parent / "files" / "digits.npz", allow_pickle=False) as arrays:
            images, targets = arrays["images"][SPLITS[split]], arrays["targets"][SPLITS[split]]
        super().__init__(
            torch.from_numpy(images).unsqueeze(1).float().div_(16),
            torch.from_numpy(targets).long(),
            augment=shifted if augment and split not in ("val", "test") else None,
            class_names=[str(digit) for digit in range(10)],
        )


def shifted(image: Tensor) -> Tensor:
    """The image moved by -1, 0 or 1 pixels in each direction, with zeros where it came from."""
    down, right = torch.randint(0, 3, (2,)).tolist()
    height, width = image.shape[-2:]
    return torch.nn.functional.pad(image, (1, 1, 1, 1))[..., down : down + height, right : right + width]
