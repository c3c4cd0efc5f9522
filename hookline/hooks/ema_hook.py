"""Keep a moving average of the weights for validation and tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from hookline.checkpoint.trainable import is_partial, with_base
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import parameter_error, require_at_least
from hookline.optim.averaging import WeightAverage, annealed_momentum, warmup_momentum
from hookline.optim.modes import OptimizerModes


@HOOKS.register()
@dataclass
class EMAHook(BaseHook):
    """Keep an average of the weights and use it for validations, tests and predictions.

    The update is `ema = momentum * ema + (1 - momentum) * weights`. Training never uses the
    average, which is kept in float32 for bfloat16 and float16 weights.

    Args:
        momentum: Share of the old average in the new one.
        interval: Number of iterations between two updates.
        warm_up: Limit the momentum to `(1 + iter) / (warm_up + iter)`, so that a young average
            follows the weights faster. 0 disables the limit.
        resume_from: Checkpoint whose average the run starts with.
        update_buffers: Average the floating-point buffers, too. Otherwise the average is used with
            the current buffers of the model.
        ema_type: `StochasticWeightAverage` weights all updates equally. `MomentumAnnealingEMA`
            raises the momentum as `updates / (gamma + updates)`.
        begin_iter: First iteration to average, counted from 1.
        begin_epoch: First epoch to average, counted from 1.
        gamma: For `MomentumAnnealingEMA`: the larger the value, the slower the momentum rises.
        device: Device that holds the average, such as `cpu` to save GPU memory. None uses the
            devices of the weights.

    Attributes:
        updates: Number of updates so far.
        started: Whether averaging has begun.

    State:
        The checkpoint holds the average as `ema_state_dict`.

    Example:
        ```yaml
        hooks:
          - {type: EMAHook, momentum: 0.999, warm_up: 100}
        ```
    """

    momentum: float = 0.9999
    interval: int = 1
    warm_up: int = 100
    resume_from: str | None = None
    update_buffers: bool = False
    ema_type: Literal[
        "ExponentialMovingAverage", "StochasticWeightAverage", "MomentumAnnealingEMA"
    ] = "ExponentialMovingAverage"
    begin_iter: int = 0
    begin_epoch: int = 0
    gamma: int = 100
    device: str | None = None
    updates: int = state(0)
    started: bool = state(False)

    priority = Priority.ABOVE_NORMAL
    adds_metrics = False

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            expected = "is the share of the old average and must be at least 0 and below 1"
            raise parameter_error(self, "momentum", expected)
        require_at_least(self, 1, "interval", "gamma")
        require_at_least(self, 0, "warm_up", "begin_iter", "begin_epoch")
        self._average: WeightAverage | None = None
        self._modes = OptimizerModes(None)

    @property
    def average(self) -> WeightAverage:
        """The average. Its `state_dict()` fits the model."""
        if self._average is None:
            raise RuntimeError(
                f"{self.name or 'EMAHook'}: there is no average before the run begins"
            )
        return self._average

    @property
    def current_momentum(self) -> float:
        """The momentum of this iteration's update."""
        if self.ema_type == "StochasticWeightAverage":
            return 1 - self._share()
        if self.ema_type == "MomentumAnnealingEMA":
            return annealed_momentum(self.momentum, self.updates, self.gamma)
        return warmup_momentum(self.momentum, self.runner.iter, self.warm_up)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Let the model use the average inside a `with` block, then restore its weights."""
        is_nested = self.average.swapped
        self.average.swap_in()
        try:
            yield
        finally:
            if not is_nested:
                self.average.swap_out()

    def before_run(self, runner: BaseRunner) -> None:
        if self._average is None or self._average.model is not runner.model:
            self._average = WeightAverage(runner.model, self.update_buffers, self.device)
            self.started = self.begin_iter <= 1 and self.begin_epoch <= 1
        if self.resume_from is not None and runner.iter == 0:
            self._load_average(runner.checkpointer.load(self.resume_from))

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        if "ema_state_dict" in runner.checkpoint or self.resume_from is None:
            self._load_average(runner.checkpoint)

    def before_train(self, runner: BaseRunner) -> None:
        self._modes = OptimizerModes(runner.optimizer)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.loop.accumulating or (runner.iter + 1) % self.interval:
            return
        if not self._modes:
            self._update(runner)
            return
        self._modes.eval(exact=True)  # Average the weights that a validation would use.
        self._update(runner)
        self._modes.train()

    def before_val_epoch(self, runner: BaseRunner) -> None:
        if self.started:
            runner.evaluation.on_end(self.average.swap_out)  # also if the evaluation fails
            self.average.swap_in()

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self.average.swap_out()

    before_test_epoch = before_predict = before_val_epoch
    after_test_epoch = after_predict = after_val_epoch

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        if self.started:
            runner.checkpoint["ema_state_dict"] = {
                key: value.detach() for key, value in self.average.state_dict().items()
            }

    def _update(self, runner: BaseRunner) -> None:
        """Update the average, or begin it."""
        if self.started:
            self.average.update(self._share())
            self.updates += 1
        elif runner.iter + 1 >= self.begin_iter and runner.epoch + 1 >= self.begin_epoch:
            self.average.restart()
            self.started = True
            self.updates = 1

    def _share(self) -> float:
        """Return the share of the current weights in the next average."""
        if self.ema_type == "StochasticWeightAverage":
            return 1 / (self.updates + 1)
        return 1 - self.current_momentum

    def _load_average(self, checkpoint: dict[str, Any]) -> None:
        """Load the average of a checkpoint; without one, restart from the current weights."""
        saved = checkpoint.get("ema_state_dict")
        if saved is None:
            self.average.restart()
            return
        if is_partial(checkpoint):
            saved = with_base(self.average.model, checkpoint)["ema_state_dict"]
        self.average.load_state_dict(saved)
        state = checkpoint.get("hooks", {}).get(self.name, {})
        self.updates = state.get("updates", self.updates)
        self.started = True
