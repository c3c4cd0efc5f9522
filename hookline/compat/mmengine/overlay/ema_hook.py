"""MMEngine's EMAHook, which takes the weights back if an evaluation fails."""

from __future__ import annotations

from typing import Any

from mmengine.hooks import original_ema_hook as original
from mmengine.registry import HOOKS

from hookline.compat.importing import PREFIX


@HOOKS.register_module(force=True)
class EMAHook(original.EMAHook):  # type: ignore[misc]
    """Keeps an average of the model and evaluates with it."""

    engine_sites = ("on_exception",)
    _is_swapped = False

    def on_exception(self, runner: Any) -> None:
        if self._is_swapped:  # An evaluation failed, and the model still holds the average.
            self._swap_ema_parameters()

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        # A copy: the tensors in `state_dict()` are those of the average itself.
        checkpoint["ema_state_dict"] = dict(self.ema_model.state_dict())
        self._swap_ema_state_dict(checkpoint)

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        average = checkpoint.get("ema_state_dict")
        if average is None or any(key.startswith(PREFIX) for key in average):
            super().after_load_checkpoint(runner, checkpoint)
            return
        # A checkpoint of Hookline's runner: the average itself is under this key.
        self.ema_model.module.load_state_dict(average, strict=self.strict_load)

    def _swap_ema_parameters(self) -> None:
        super()._swap_ema_parameters()
        self._is_swapped = not self._is_swapped
