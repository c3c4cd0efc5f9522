"""The base class of models, and the data preprocessor that prepares their batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.registry import MODELS
from hookline.compat.openmmlab import is_list_of


@MODELS.register_module()
class BaseDataPreprocessor(nn.Module):
    """Moves a batch to the model's device.

    Args:
        non_blocking: Copy asynchronously where possible.
    """

    def __init__(self, non_blocking: bool = False) -> None:
        super().__init__()
        self._non_blocking = non_blocking
        # It moves with the model, and is no part of checkpoints.
        self.register_buffer("_marker", torch.empty(0), persistent=False)

    @property
    def device(self) -> torch.device:
        marker: Any = self._marker
        return marker.device  # type: ignore[no-any-return]

    def cast_data(self, data: Any) -> Any:
        """Move all tensors in a nested structure to the device."""
        return tree_map_only(
            torch.Tensor, lambda each: each.to(self.device, non_blocking=self._non_blocking), data
        )

    def forward(self, data: Any, training: bool = False) -> Any:
        return self.cast_data(data)


class BaseModel(nn.Module):
    """The base class of models.

    Subclasses implement `forward(inputs, data_samples, mode)`, which returns losses for the mode
    `loss`, results for `predict`, and anything for `tensor`.
    """

    def __init__(self, data_preprocessor: Any = None, init_cfg: Any = None) -> None:
        super().__init__()
        if init_cfg is not None:
            raise NotImplementedError(f"{type(self).__name__}: init_cfg is not covered; {ADVICE}")
        if data_preprocessor is None:
            data_preprocessor = {"type": "BaseDataPreprocessor"}
        if isinstance(data_preprocessor, Mapping):
            data_preprocessor = MODELS.build(data_preprocessor)
        self.data_preprocessor = data_preprocessor

    def train_step(self, data: Any, optim_wrapper: Any) -> dict[str, torch.Tensor]:
        """Run forward, backward and an optimizer step; return the values to log."""
        with optim_wrapper.optim_context(self):
            losses = run_forward(self, self.data_preprocessor(data, True), mode="loss")
        parsed_losses, log_vars = self.parse_losses(losses)
        optim_wrapper.update_params(parsed_losses)
        return log_vars

    def val_step(self, data: Any) -> Any:
        return run_forward(self, self.data_preprocessor(data, False), mode="predict")

    def test_step(self, data: Any) -> Any:
        return self.val_step(data)

    def parse_losses(self, losses: dict[str, Any]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Return the sum of the values with `loss` in their names, and all values to log."""
        log_vars: dict[str, Any] = {}
        for name, value in losses.items():
            if isinstance(value, torch.Tensor):
                log_vars[name] = value.mean()
            elif is_list_of(value, torch.Tensor):
                log_vars[name] = sum(part.mean() for part in value)
            else:
                raise TypeError(f"{name} is not a tensor or list of tensors")
        loss: Any = sum(value for name, value in log_vars.items() if "loss" in name)
        return loss, {"loss": loss, **log_vars}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} must implement forward(inputs, data_samples, mode)"
        )


def run_forward(model: nn.Module, data: Any, mode: str) -> Any:
    """Call a model with a batch: a dict has the arguments' names, a list their order."""
    if isinstance(data, Mapping):
        return model(**data, mode=mode)
    return model(*data, mode=mode)
