"""Loss scaling: gradients too small for half precision are kept by making the loss larger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.amp import GradScaler

from hookline.errors import suggest

LossScale = float | str | Mapping[str, Any]
KEYS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")


class LossScaler:
    """`torch.amp.GradScaler` of one optimizer, with a fixed scale too; it knows whether a step was left out."""

    def __init__(self, device: str, loss_scale: LossScale = "dynamic", enabled: bool = True) -> None:
        options: dict[str, Any] = {"init_scale": float(loss_scale)} if isinstance(loss_scale, (int, float)) else {}
        if isinstance(loss_scale, Mapping):
            options = dict(loss_scale)
        self._scaler = GradScaler(device, enabled=enabled, **options)
        self._fixed = options["init_scale"] if isinstance(loss_scale, (int, float)) else None
        self._stepped = False

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Watch the optimizer, whose step the scaler may leave out."""
        self.detach()
        self._handle = optimizer.register_step_post_hook(self._note)

    def detach(self) -> None:
        if hasattr(self, "_handle"):
            self._handle.remove()

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        return self._scaler.scale(loss)

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Bring the gradients back to their real size; infinite ones are noted."""
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Step unless a gradient is infinite or NaN; whether it did."""
        self._stepped = False
        self._scaler.step(optimizer)
        self._scaler.update(self._fixed)
        return self._stepped

    def get_scale(self) -> float:
        return self._scaler.get_scale()

    def state_dict(self) -> dict[str, Any]:
        return self._scaler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with a saved scale; a fixed one follows the config."""
        if state and self._scaler.is_enabled() and self._fixed is None:
            self._scaler.load_state_dict(dict(state))

    def _note(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        found: torch.Tensor | None = getattr(optimizer, "found_inf", None)  # fused optimizers are called and skip by themselves
        self._stepped = found is None or not bool(found)


def check_loss_scale(owner: str, loss_scale: LossScale) -> None:
    """ValueError for what is not a number above 0, 'dynamic', or the options of torch's GradScaler."""
    if isinstance(loss_scale, Mapping):
        for key in loss_scale:
            if key not in KEYS:
                raise ValueError(f"{owner}: loss_scale has no {key!r}{suggest(key, KEYS)}")
    elif isinstance(loss_scale, str):
        if loss_scale != "dynamic":
            raise ValueError(f"{owner}: loss_scale must be a number, 'dynamic' or a mapping, got {loss_scale!r}")
    elif not loss_scale > 0:
        raise ValueError(f"{owner}: loss_scale must be above 0, got {loss_scale}")
