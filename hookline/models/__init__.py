"""Small reference models by name. A config names any other `torch.nn.Module` by dotted path."""

from __future__ import annotations

import torch

from hookline.parts import PARTS
from hookline.registry import Registry

__all__ = ["MODELS"]

MODELS: Registry[torch.nn.Module] = Registry(
    "model", torch.nn.Module, home="hookline.models.zoo", factories=True, parts=PARTS
)
