"""MMEngine's optimizer wrapper, which passes the loss to hooks before backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from mmengine.optim.optimizer import original_optimizer_wrapper as original
from mmengine.registry import OPTIM_WRAPPERS


@OPTIM_WRAPPERS.register_module(force=True)
class OptimWrapper(original.OptimWrapper):  # type: ignore[misc]
    """An optimizer with gradient accumulation and clipping.

    Attributes:
        on_loss: Gets the loss and returns the one to differentiate. The runner calls hooks here.
    """

    on_loss: Callable[[torch.Tensor], torch.Tensor] | None = None

    def update_params(self, loss: torch.Tensor, *arguments: Any, **named: Any) -> None:
        """Run backward, and step if the accumulation is complete."""
        if self.on_loss is not None:
            loss = self.on_loss(loss)
        super().update_params(loss, *arguments, **named)
