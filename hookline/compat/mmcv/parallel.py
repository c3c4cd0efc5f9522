"""The wrappers of models that MMCV's training scripts use."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hookline.compat.missing import not_covered
from hookline.engine.step import move


class MMDataParallel(nn.Module):
    """A model on one device, whose batches are moved there: `train_step`, `val_step` and calls go to `module`."""

    def __init__(self, module: nn.Module, device_ids: Any = None, dim: int = 0, **kwargs: Any) -> None:
        super().__init__()
        ids = list(device_ids or [])
        if len(ids) > 1:
            raise ValueError(f"MMDataParallel is for one device, got {ids}: use MMDistributedDataParallel and torchrun for several")
        use_gpu = torch.cuda.is_available() and ids not in ([], [-1])
        self.device = torch.device("cuda", ids[0]) if use_gpu else next(module.parameters()).device
        self.module = module.to(self.device)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*move(args, self.device), **move(kwargs, self.device))

    def train_step(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        return self.module.train_step(move(data, self.device), *args, **kwargs)  # type: ignore[operator]

    def val_step(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        return self.module.val_step(move(data, self.device), *args, **kwargs)  # type: ignore[operator]


class MMDistributedDataParallel(DistributedDataParallel):
    """`DistributedDataParallel` whose `train_step` and `val_step` count as its call."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        method = kwargs.pop("_method", None)
        if method is None:
            return super().forward(*args, **kwargs)  # type: ignore[no-untyped-call]

        def once(*inner: Any, **named: Any) -> Any:  # DDP follows calls of `forward` only, and the step itself calls that too
            del self.module.forward
            return getattr(self.module, method)(*inner, **named)

        self.module.forward = once
        return super().forward(*args, **kwargs)  # type: ignore[no-untyped-call]

    def train_step(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, _method="train_step", **kwargs)

    def val_step(self, *args: Any, **kwargs: Any) -> Any:
        return self.module.val_step(*args, **kwargs)


def is_module_wrapper(module: nn.Module) -> bool:
    """Whether the model proper is its `module`."""
    return isinstance(module, (MMDataParallel, DataParallel, DistributedDataParallel))


__getattr__ = not_covered(__name__, globals(), {"DataContainer": "let the data set return tensors, and collate batches as torch does"})
