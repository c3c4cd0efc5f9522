"""The wrappers of models in MMCV's training scripts, without MMCV."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hookline.batches import move
from hookline.compat.missing import not_covered
from hookline.compat.mmcv.errors import ADVICE
from hookline.compat.mmcv.parallel.distributed import MMDistributedDataParallel


class MMDataParallel(nn.Module):
    """A model on one device, to which its batches are moved."""

    module: Any

    def __init__(
        self, module: nn.Module, device_ids: Any = None, dim: int = 0, **kwargs: Any
    ) -> None:
        super().__init__()
        ids = list(device_ids or [])
        if len(ids) > 1:
            raise ValueError(
                f"MMDataParallel is for one device, got {ids}: use MMDistributedDataParallel and "
                "torchrun for several"
            )
        self.device = next(module.parameters()).device
        if torch.cuda.is_available() and ids not in ([], [-1]):
            self.device = torch.device("cuda", ids[0])
        self.module = module.to(self.device)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*move(args, self.device), **move(kwargs, self.device))

    def train_step(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        return self.module.train_step(move(data, self.device), *args, **kwargs)

    def val_step(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        return self.module.val_step(move(data, self.device), *args, **kwargs)


def is_module_wrapper(module: nn.Module) -> bool:
    """Return whether a module wraps the model, as its `module`."""
    return isinstance(module, (MMDataParallel, DataParallel, DistributedDataParallel))


__all__ = ["MMDataParallel", "MMDistributedDataParallel", "is_module_wrapper"]

__getattr__ = not_covered(
    __name__,
    __all__,
    {"DataContainer": "let the data set return tensors, and collate batches as torch does"},
    advice=ADVICE,
)
