"""Count tokens and floating point operations of an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from hookline.batches import INPUT_KEYS


def count_tokens(batch: Any) -> int:
    """Count the tokens of a batch, padding included; 0 if it has none.

    Tokens are the elements of `input_ids`, or of inputs that are integers [N, length].
    """
    inputs = _find_inputs(batch)
    if not isinstance(inputs, torch.Tensor) or inputs.ndim != 2:
        return 0
    if inputs.dtype not in (torch.int64, torch.int32):
        return 0
    return inputs.numel()


def _find_inputs(batch: Any) -> Any:
    if isinstance(batch, Mapping):
        for key in ("input_ids", *INPUT_KEYS):
            if key in batch:
                return batch[key]
        return None
    if isinstance(batch, (list, tuple)) and batch:
        return batch[0]
    return batch


class FlopCount(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A counter of floating point operations between `start` and `stop`.

    torch's FlopCounterMode decomposes some operations, which may round differently. The formulas
    are the same.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self._running = False

    def start(self) -> None:
        """Start counting."""
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
        formula = flop_registry.get(func._overloadpacket)  # noqa: SLF001
        if formula is not None:
            self.flops += int(formula(*args, **kwargs, out_val=result))
        return result
