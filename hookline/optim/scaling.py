"""Loss scaling, which keeps small gradients from vanishing in half precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.amp import GradScaler

from hookline.errors import ConfigError, suggest

LossScale = float | str | Mapping[str, Any]
KEYS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")


class LossScaler:
    """A `torch.amp.GradScaler` for one (joint) optimizer that reports whether a step was skipped.

    Args:
        device: The type of the device.
        loss_scale: `dynamic`, a number for a fixed scale, or options of `GradScaler`.
        enabled: Whether the loss is scaled at all.
    """

    def __init__(
        self, device: str, loss_scale: LossScale = "dynamic", enabled: bool = True
    ) -> None:
        options: dict[str, Any] = {}
        self._fixed: float | None = None
        if isinstance(loss_scale, Mapping):
            options = dict(loss_scale)
        elif isinstance(loss_scale, (int, float)):
            self._fixed = float(loss_scale)
            options = {"init_scale": self._fixed}
        self._scaler = GradScaler(device, enabled=enabled, **options)
        self._stepped = False

    @property
    def is_enabled(self) -> bool:
        """Whether the loss is scaled."""
        return self._scaler.is_enabled()

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Observe the steps of an optimizer, some of which the scaler skips."""
        self.detach()
        self._handle = optimizer.register_step_post_hook(self._record_step)

    def detach(self) -> None:
        """Stop observing the optimizer."""
        if hasattr(self, "_handle"):
            self._handle.remove()

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the scaled loss."""
        return self._scaler.scale(loss)

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide the gradients by the scale, and record infinite ones."""
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Step unless a gradient is infinite or NaN; return whether it stepped."""
        self._stepped = False
        self._scaler.step(optimizer)
        self._scaler.update(self._fixed)
        return self._stepped

    def get_scale(self) -> float:
        """Return the current scale."""
        return self._scaler.get_scale()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scaler."""
        return self._scaler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a dynamic scale; a fixed one follows the config."""
        if state and self._scaler.is_enabled() and self._fixed is None:
            self._scaler.load_state_dict(dict(state))

    def _record_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        # Fused optimizers are always called, and skip the step themselves.
        found_inf: torch.Tensor | None = getattr(optimizer, "found_inf", None)
        self._stepped = found_inf is None or not bool(found_inf)


def check_loss_scale(owner: str, loss_scale: LossScale) -> None:
    """Raise ConfigError unless a loss scale is a number above 0, `dynamic` or valid options."""
    about: dict[str, Any] = {"component": owner, "parameter": "loss_scale"}
    if isinstance(loss_scale, Mapping):
        for key in loss_scale:
            if key not in KEYS:
                message = f"loss_scale has no {key!r}"
                raise ConfigError(message, suggestion=suggest(key, KEYS), **about)
    elif isinstance(loss_scale, str):
        if loss_scale != "dynamic":
            message = "loss_scale must be a number, 'dynamic' or a mapping"
            raise ConfigError(message, value=loss_scale, **about)
    elif not loss_scale > 0:
        raise ConfigError("loss_scale must be above 0", value=loss_scale, **about)
