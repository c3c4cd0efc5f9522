"""An average of the weights, for validation, testing and use; training itself never sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hookline.checkpoint import load_checkpoint
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.optim.averaging import WeightAverage, annealed, warmed_up


@HOOKS.register()
@dataclass
class EMAHook(BaseHook):
    """Keep `ema = momentum * ema + (1 - momentum) * weights` and validate and test with it.

    `ema_type` may also be `StochasticWeightAverage` (all weights count the same) or `MomentumAnnealingEMA` (the momentum
    rises as `updates / (gamma + updates)`). `begin_iter` and `begin_epoch` say from when on to average. With `update_buffers`
    running statistics are averaged too, else the average is used with the model's own. `resume_from` is a checkpoint whose
    average to start with. `device: cpu` keeps the average out of the GPU's memory.
    """

    momentum: float = 0.9999
    interval: int = 1
    warm_up: int = 100
    resume_from: str | None = None
    update_buffers: bool = False
    ema_type: Literal["ExponentialMovingAverage", "StochasticWeightAverage", "MomentumAnnealingEMA"] = "ExponentialMovingAverage"
    begin_iter: int = 0
    begin_epoch: int = 0
    gamma: int = 100
    device: str | None = None
    updates: int = state(0)
    started: bool = state(False)

    priority = Priority.ABOVE_NORMAL

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise ValueError(f"EMAHook: momentum is the share of the old average, at least 0 and below 1, got {self.momentum}")
        for name, least in (("interval", 1), ("warm_up", 0), ("begin_iter", 0), ("begin_epoch", 0), ("gamma", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"EMAHook: {name} must be at least {least}, got {getattr(self, name)}")
        self._average: WeightAverage | None = None

    @property
    def average(self) -> WeightAverage:
        """The average itself; `average.state_dict()` fits the model."""
        if self._average is None:
            raise RuntimeError("EMAHook: there is no average before the run has begun")
        return self._average

    @property
    def current_momentum(self) -> float:
        """The momentum of this iteration's update."""
        if self.ema_type == "StochasticWeightAverage":
            return 1 - self._share()
        if self.ema_type == "MomentumAnnealingEMA":
            return annealed(self.momentum, self.updates, self.gamma)
        return warmed_up(self.momentum, self.runner.iter, self.warm_up)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Within this block the model computes with the average; afterwards its own weights are back, whatever happened."""
        inside_another = self.average.swapped
        self.average.swap_in()
        try:
            yield
        finally:
            if not inside_another:
                self.average.swap_out()

    def before_run(self, runner: BaseRunner) -> None:
        if self._average is None or self._average.model is not runner.model:
            self._average = WeightAverage(runner.model, self.update_buffers, self.device)
            self.started = self.begin_iter <= 1 and self.begin_epoch <= 1
        if self.resume_from is not None and runner.iter == 0:
            self._take(runner.parallel.whole(load_checkpoint(self.resume_from), Path(self.resume_from).parent))

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        if "ema_state_dict" in runner.checkpoint or self.resume_from is None:
            self._take(runner.checkpoint)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.accumulating or (runner.iter + 1) % self.interval:
            return
        if self.started:
            self.average.update(self._share())
            self.updates += 1
        elif runner.iter + 1 >= self.begin_iter and runner.epoch + 1 >= self.begin_epoch:
            self.average.restart()
            self.started, self.updates = True, 1

    def before_val_epoch(self, runner: BaseRunner) -> None:
        if self.started:
            runner.evaluation.undo_with(self.average.swap_out)  # also when the evaluation fails
            self.average.swap_in()

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self.average.swap_out()

    before_test_epoch = before_val_epoch
    after_test_epoch = after_val_epoch

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        if self.started:
            runner.checkpoint["ema_state_dict"] = {key: value.detach() for key, value in self.average.state_dict().items()}

    def _share(self) -> float:
        """How much the current weights count in this iteration's update."""
        if self.ema_type == "StochasticWeightAverage":
            return 1 / (self.updates + 1)  # then all weights so far count the same
        return 1 - self.current_momentum

    def _take(self, checkpoint: dict[str, Any]) -> None:
        """Go on with a checkpoint's average; with its weights, or the model's, if it has none."""
        saved = checkpoint.get("ema_state_dict")
        if saved is None:
            self.average.restart()
            return
        self.average.load_state_dict(saved)
        counted = checkpoint.get("hooks", {}).get(self.name, {})
        self.updates, self.started = counted.get("updates", self.updates), True
