"""The losses of `torch.nn` by name: `CrossEntropyLoss` is also `cross_entropy`."""

from __future__ import annotations

import re

from torch import nn
from torch.nn.modules import loss as torch_losses

from hookline.registry import Registry

LOSSES: Registry[nn.Module] = Registry("loss", nn.Module)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.removesuffix("Loss")).lower()


for _name in torch_losses.__all__:
    if _name != "NLLLoss2d":  # deprecated in torch, the same as NLLLoss
        LOSSES.register(_name)(getattr(nn, _name))
        LOSSES.register(_snake(_name))(getattr(nn, _name))
