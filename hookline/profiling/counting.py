"""How much work an iteration did: samples, tokens and floating point operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from hookline.engine.step import INPUT_KEYS


def count_samples(outputs: Mapping[str, Any], batch: Any) -> int:
    """How many samples a batch has: as the model says, or its targets, or the first part of the batch; 1 if nothing tells."""
    given = outputs.get("num_samples")
    if given is not None:
        return int(given)
    part = outputs.get("targets")
    if part is None:
        part = next(iter(batch.values()), None) if isinstance(batch, Mapping) else batch[0] if isinstance(batch, (list, tuple)) else batch
    try:
        return len(part) or 1  # type: ignore[arg-type]
    except TypeError:
        return 1


def count_tokens(batch: Any) -> int:
    """How many tokens a batch has, padding included: its `input_ids`, or inputs that are whole numbers; 0 if it has none."""
    if isinstance(batch, Mapping):
        inputs = next((batch[key] for key in ("input_ids", *INPUT_KEYS) if key in batch), None)
    else:
        inputs = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
    is_ids = isinstance(inputs, torch.Tensor) and inputs.dtype in (torch.int64, torch.int32) and inputs.ndim == 2
    return inputs.numel() if is_ids else 0  # type: ignore[union-attr]


class FlopCount(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the floating point operations between `start` and `stop`, forward and backward, and changes none of them.

    (torch's own FlopCounterMode takes some operations apart, which may round differently; the formulas are the same.)
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self._running = False

    def start(self) -> None:
        self.__enter__()  # type: ignore[no-untyped-call]
        self._running = True

    def stop(self) -> None:
        """Stop if it is running."""
        if self._running:
            self._running = False
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += int(formula(*args, **kwargs, out_val=result))
        return result
