"""An average of the weights, used for validation and testing and saved in checkpoints."""

from __future__ import annotations

import copy
from typing import Any

import torch

from hookline.compat.importing import PREFIX, split_average
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.model.wrappers import unwrap
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.weights import rename_weights
from hookline.errors import require_choice
from hookline.optim.averaging import WeightAverage, annealed_momentum

TYPES = ("ExponentialMovingAverage", "StochasticWeightAverage", "MomentumAnnealingEMA")


@HOOKS.register_module()
class EMAHook(Hook):
    """Keeps an average of the model and evaluates with it.

    As in MMEngine, the `state_dict` of a checkpoint holds the average, and `ema_state_dict` holds
    the weights for further training.

    Args:
        ema_type: `ExponentialMovingAverage`; `StochasticWeightAverage`, the mean of all weights; or
            `MomentumAnnealingEMA`, where the share of the new weights decays to `momentum`.
        begin_iter: The first iteration with an average; the weights are copied before it.
        begin_epoch: The first epoch with an average.
        momentum: The share of the new weights.
        gamma: After this number of updates, half of an annealed average is new.
        interval: The number of iterations between two updates.
        update_buffers: Average the buffers too; otherwise those of the model are used.
    """

    priority = "NORMAL"
    engine_sites = ("on_exception",)

    def __init__(
        self,
        ema_type: str = "ExponentialMovingAverage",
        begin_iter: int = 0,
        begin_epoch: int = 0,
        momentum: float = 0.0002,
        gamma: int = 100,
        interval: int = 1,
        update_buffers: bool = False,
    ) -> None:
        require_choice("EMAHook", "ema_type", ema_type, TYPES)
        self.ema_type = ema_type
        self.begin_iter = begin_iter
        self.begin_epoch = begin_epoch
        self.momentum = momentum
        self.gamma = gamma
        self.interval = interval
        self.update_buffers = update_buffers
        self.steps = 0

    def before_run(self, runner: Any) -> None:
        self.average = WeightAverage(unwrap(runner.model), buffers=self.update_buffers)
        self.steps = 0

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        if runner.epoch + 1 < self.begin_epoch or runner.iter + 1 < self.begin_iter:
            self.average.restart()
            return
        if self.steps == 0:
            self.average.restart()
        elif self.steps % self.interval == 0:
            self.average.update(self._share())
        self.steps += 1

    def before_val_epoch(self, runner: Any) -> None:
        self.average.swap_in()

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        self.average.swap_out()

    before_test_epoch = before_val_epoch
    after_test_epoch = after_val_epoch

    def on_exception(self, runner: Any) -> None:
        self.average.swap_out()  # An evaluation failed.

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        weights = checkpoint["state_dict"]
        saved: dict[str, Any] = {"steps": torch.tensor(self.steps)}
        averaged = copy.copy(weights)
        for key, value in self.average.state_dict().items():
            saved[PREFIX + key] = weights[key]
            averaged[key] = value.detach().cpu()
        checkpoint["state_dict"] = averaged
        checkpoint["ema_state_dict"] = saved

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        other = checkpoint.get("ema_state_dict", {})
        average = checkpoint.get("state_dict", checkpoint)
        is_of_mmengine = any(key.startswith(PREFIX) for key in other)
        if other and (runner._resume or not is_of_mmengine):
            self.steps = int(other.get("steps", 0))
            raw, average = split_average(checkpoint)
            checkpoint["state_dict"] = copy.copy(checkpoint["state_dict"])
            checkpoint["state_dict"].update(raw)
        weights = self.average.state_dict()
        for key, value in rename_weights(average).items():
            if key in weights and weights[key].shape == value.shape:
                weights[key] = value
        self.average.load_state_dict(weights)

    def _share(self) -> float:
        """Return the share of the current weights in the next average."""
        if self.ema_type == "StochasticWeightAverage":
            return 1 / (self.steps // self.interval + 1)
        if self.ema_type == "MomentumAnnealingEMA":
            return 1 - annealed_momentum(1 - self.momentum, self.steps, self.gamma)
        return self.momentum
