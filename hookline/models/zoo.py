"""Register the built-in models by importing their modules."""

from __future__ import annotations

from hookline.models.cnn import CNN
from hookline.models.detector import Detector
from hookline.models.mlp import MLP
from hookline.models.resnet import ResNet
from hookline.models.segmenter import Segmenter

__all__ = ["CNN", "MLP", "Detector", "ResNet", "Segmenter"]
