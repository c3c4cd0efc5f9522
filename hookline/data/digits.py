"""The 1,797 handwritten digits that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset
from hookline.errors import require_choice

FILE = Path(__file__).parent / "files" / "digits.npz"
SPLITS = {
    "train": slice(0, 1257),
    "val": slice(1257, 1527),
    "test": slice(1527, 1797),
    "all": slice(None),
}


@DATASETS.register("digits")
class Digits(ArrayDataset):
    """Images of handwritten digits, 1x8x8, with values from 0 to 1.

    There are 1,257 images for training, 270 for validation and 270 for the test. The splits are
    fixed and stratified. The data is "Optical Recognition of Handwritten Digits" (E. Alpaydin,
    C. Kaynak; UCI; CC BY 4.0).

    Args:
        split: The part of the data.
        augment: Shift each image by up to one pixel in each direction at random. Has no effect on
            validation and test images, because one config builds all splits.
    """

    def __init__(
        self, split: Literal["train", "val", "test", "all"] = "train", augment: bool = False
    ) -> None:
        require_choice("Digits", "split", split, SPLITS)
        with np.load(FILE, allow_pickle=False) as arrays:
            images = torch.from_numpy(arrays["images"][SPLITS[split]])
            targets = torch.from_numpy(arrays["targets"][SPLITS[split]])
        is_augmented = augment and split not in ("val", "test")
        super().__init__(
            images.unsqueeze(1).float().div_(16),
            targets.long(),
            augment=shift_randomly if is_augmented else None,
            class_names=[str(digit) for digit in range(10)],
        )


def shift_randomly(image: Tensor) -> Tensor:
    """Shift an image by -1, 0 or 1 pixels in each direction, and fill with zeros."""
    down, right = torch.randint(0, 3, (2,)).tolist()
    height, width = image.shape[-2:]
    padded = pad(image, (1, 1, 1, 1))
    return padded[..., down : down + height, right : right + width]
