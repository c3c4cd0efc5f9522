"""Small reference models by name; any other `torch.nn.Module` goes by its dotted path."""

from __future__ import annotations

import torch

from hookline.registry import Registry

__all__ = ["MODELS"]

MODELS: Registry[torch.nn.Module] = Registry("model", torch.nn.Module, home="hookline.models.zoo")
