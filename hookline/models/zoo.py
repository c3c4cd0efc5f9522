"""Importing this registers the built-in models."""

from __future__ import annotations

from hookline.models.cnn import CNN
from hookline.models.mlp import MLP
from hookline.models.resnet import ResNet

__all__ = ["CNN", "MLP", "ResNet"]
