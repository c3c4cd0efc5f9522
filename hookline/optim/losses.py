"""The registry of losses: those of `torch.nn`, also in snake case without `Loss`."""

from __future__ import annotations

import re

from torch import nn
from torch.nn.modules import loss as torch_losses

from hookline.parts import PARTS
from hookline.registry import Registry

LOSSES: Registry[nn.Module] = Registry("loss", nn.Module, factories=True, parts=PARTS)

WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _snake_case(name: str) -> str:
    """Turn `CrossEntropyLoss` into `cross_entropy`."""
    return WORD_STARTS.sub("_", name.removesuffix("Loss")).lower()


for _name in torch_losses.__all__:
    if _name != "NLLLoss2d":  # Deprecated in torch, the same as NLLLoss.
        LOSSES.register(_name)(getattr(nn, _name))
        LOSSES.register(_snake_case(_name))(getattr(nn, _name))
