"""Register the built-in datasets by importing their modules."""

from __future__ import annotations

from hookline.data.digits import Digits
from hookline.data.image_files import CIFAR10, MNIST
from hookline.data.shapes import ShapesDetection, ShapesSegmentation
from hookline.data.tensors import Tensors
from hookline.data.text_files import TextFiles

__all__ = [
    "CIFAR10",
    "MNIST",
    "Digits",
    "ShapesDetection",
    "ShapesSegmentation",
    "Tensors",
    "TextFiles",
]
