"""Hooks that own the site `optimize`: backward pass, clipping, optimizer step.

`OptimizingHook` has these steps. The hooks here add accumulation, loss scaling and autocast to it,
in methods that extend one step each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.batches import stated_count
from hookline.engine import HOOKS, BaseRunner, Priority, state
from hookline.errors import ConfigError, parameter_error, require_at_least
from hookline.hooks.bases.optimizing import OptimizingHook
from hookline.optim.fp16 import enable_fp16
from hookline.optim.joint import as_one
from hookline.optim.scaling import LossScaler, check_loss_scale
from hookline.optim.sync import gradient_sync
from hookline.optim.weighing import GroupWeights, Number, count_terms, sum_over_ranks
from hookline.step import StepFunction


@HOOKS.register()
@dataclass
class OptimizerHook(OptimizingHook):
    """Run backward, clip the gradients, step the optimizer and clear the gradients.

    Several optimizers are stepped together, after clipping over all of them. An optimizer that
    needs a closure, such as LBFGS, may evaluate the batch several times.

    Args:
        grad_clip: Arguments of `torch.nn.utils.clip_grad_norm_` (`max_norm`, `norm_type`), or
            `{clip_value: …}`. The norm is recorded as `grad_norm`.
        detect_anomalous_params: Log parameters that the loss does not depend on, and parameters
            without a gradient. Slow: for debugging only.

    Example:
        ```yaml
        hooks:
          - {type: OptimizerHook, grad_clip: {max_norm: 1.0}}
        ```
    """


@HOOKS.register()
@dataclass
class GradientCumulativeOptimizerHook(OptimizerHook):
    """Accumulate the gradients of several iterations before each optimizer step.

    The step uses the mean over all samples, as one large batch would, even if a batch or the last
    group of an epoch is smaller. A model whose loss is a mean over something else, such as tokens,
    returns their number as `num_tokens`. In a distributed run without it, only loaders that
    Hookline divides know the size of a batch over all ranks. Batches of other loaders count
    equally.

    Args:
        cumulative_iters: Number of iterations for each optimizer step.

    Example:
        ```yaml
        hooks:
          - {type: GradientCumulativeOptimizerHook, cumulative_iters: 4, grad_clip: {max_norm: 1.0}}
        ```
    """

    cumulative_iters: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "cumulative_iters")
        self._weights = GroupWeights()

    def before_train(self, runner: BaseRunner) -> None:
        super().before_train(runner)
        if self._needs_closure and self.cumulative_iters > 1:
            expected = "must be 1: the optimizer evaluates a batch several times in each step"
            raise parameter_error(self, "cumulative_iters", expected)
        self._begin(runner)
        self._sync = None
        if runner.epoch_length is not None:  # Otherwise any iteration may be the last one.
            self._sync = gradient_sync(runner.parallel.train_module)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        super().after_load_checkpoint(runner)
        self._begin(runner)  # A rollback may happen inside a group.
        if runner.optimizer is not None:
            as_one(runner.optimizer).zero_grad(set_to_none=True)

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self._sync is not None:
            self._sync(self._is_last_of_group(runner))

    def optimize(self, runner: BaseRunner) -> None:
        is_complete = self._is_last_of_group(runner)
        self._differentiate(runner, self._weights.add(*self._sizes(runner)))
        runner.loop.accumulating = not is_complete
        if is_complete:
            self._finish(runner)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if runner.loop.accumulating:  # A loader without a length has ended.
            self._finish(runner)

    def _finish(self, runner: BaseRunner) -> None:
        self._collect_parameters(runner)
        self._weights.normalize(self._params)
        self._begin(runner)
        super()._finish(runner)

    def _begin(self, runner: BaseRunner) -> None:
        """Begin a new group of iterations."""
        self._weights.reset()
        runner.loop.accumulating = False

    def _sizes(self, runner: BaseRunner) -> tuple[Number, Number]:
        """Return the size of this rank's part of the batch, times ranks, and of the whole batch."""
        loader: Any = runner.train_loader
        count = stated_count(runner.outputs)
        if runner.world.size == 1:
            size = count_terms(runner.outputs, runner.batch)
        elif count is not None:
            own, total = sum_over_ranks(count, runner.outputs["loss"].device)
            return own * runner.world.size, total
        elif self.end_of_epoch(runner) and hasattr(loader, "last_weight"):
            size = loader.last_weight()
        else:
            size = 1.0
        return size, size

    def _is_last_of_group(self, runner: BaseRunner) -> bool:
        """Return whether the current iteration is the last one of its group."""
        return (
            self._weights.count + 1 >= self.cumulative_iters
            or self.end_of_epoch(runner)
            or self.is_last_iter(runner)
        )


@HOOKS.register()
@dataclass
class Fp16OptimizerHook(OptimizerHook):
    """Scale the loss, for models whose methods are decorated with `auto_fp16`.

    A step with infinite gradients is skipped. AmpOptimizerHook works with any model.

    Args:
        loss_scale: A fixed number, `dynamic`, or the options of `torch.amp.GradScaler`.

    State:
        The checkpoint holds the state of the loss scaler as `scaler`.

    Attributes:
        skipped_steps: Number of skipped steps.

    Example:
        ```yaml
        hooks:
          - {type: Fp16OptimizerHook, loss_scale: 512.0}
        ```
    """

    loss_scale: float | str | dict[str, Any] = 512.0
    skipped_steps: int = state(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_loss_scale(type(self).__name__, self.loss_scale)

    def before_run(self, runner: BaseRunner) -> None:
        self._make_scaler(runner)
        if not enable_fp16(runner.model):
            runner.logger.warning(
                "%s: no method of the model has auto_fp16, so it runs in full precision: decorate "
                "one, or use AmpOptimizerHook",
                self.name,
            )

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if runner.checkpoint is not None and runner.loop.resuming:
            self._scaler.load_state_dict(runner.checkpoint.get("scaler", {}))

    def before_train(self, runner: BaseRunner) -> None:
        super().before_train(runner)
        if self._needs_closure and self._scaler.is_enabled:
            message = "cannot scale the loss of an optimizer that needs a closure; use bfloat16"
            raise ConfigError(message, component=self.name, parameter="loss_scale")
        self._scaler.attach(self._optimizer)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        runner.checkpoint["scaler"] = self._scaler.state_dict()

    def cleanup(self, runner: BaseRunner) -> None:
        if hasattr(self, "_scaler"):
            self._scaler.detach()

    def scale_loss(self, loss: torch.Tensor) -> torch.Tensor:
        return self._scaler.scale(loss)

    def _make_scaler(self, runner: BaseRunner, enabled: bool = True) -> None:
        """Make the loss scaler; a second training continues with the scale of the first."""
        earlier: LossScaler | None = getattr(self, "_scaler", None)
        self._scaler = LossScaler(runner.device.type, self.loss_scale, enabled)
        if earlier is not None and runner.iter > 0:
            self._scaler.load_state_dict(earlier.state_dict())

    def _finish(self, runner: BaseRunner) -> None:
        self._scaler.unscale(self._optimizer)
        super()._finish(runner)

    def _step(self, runner: BaseRunner) -> bool:
        if self._needs_closure:
            return super()._step(runner)
        if self._scaler.step(self._optimizer):
            return True
        self.skipped_steps += 1
        runner.events.put_scalar("skipped_steps", self.skipped_steps, smoothing_hint=False)
        return False


@HOOKS.register()
@dataclass
class GradientCumulativeFp16OptimizerHook(GradientCumulativeOptimizerHook, Fp16OptimizerHook):
    """Accumulate gradients and scale the loss, for models with `auto_fp16`.

    It combines GradientCumulativeOptimizerHook and Fp16OptimizerHook.

    Example:
        ```yaml
        hooks:
          - {type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, loss_scale: dynamic}
        ```
    """


@HOOKS.register()
@dataclass
class AmpOptimizerHook(GradientCumulativeOptimizerHook, Fp16OptimizerHook):
    """Run the training step of any model in mixed precision, with `torch.autocast`.

    Backward, optimizer and metrics run outside autocast. `float16` comes with loss scaling,
    `bfloat16` needs none.

    Args:
        dtype: Data type of autocast.
        evaluate: Run the model under autocast in validations and tests, too.

    Example:
        ```yaml
        hooks:
          - {type: AmpOptimizerHook, dtype: bfloat16, grad_clip: {max_norm: 1.0}}
        ```
    """

    dtype: Literal["bfloat16", "float16"] = "bfloat16"
    loss_scale: float | str | dict[str, Any] = "dynamic"
    evaluate: bool = True

    priority = Priority.LOWEST  # Innermost: no other hook runs under autocast.

    def before_run(self, runner: BaseRunner) -> None:
        self._make_scaler(runner, enabled=self.dtype == "float16")
        self._autocast = torch.autocast(runner.device.type, dtype=getattr(torch, self.dtype))
        self._inside = False
        if self.evaluate:
            runner.parallel.step_wrappers[self.name] = self._wrap_step

    def before_train_iter(self, runner: BaseRunner) -> None:
        super().before_train_iter(runner)
        self._autocast.__enter__()  # type: ignore[no-untyped-call]
        self._inside = True

    def after_forward(self, runner: BaseRunner) -> None:
        if self._inside:
            self._inside = False
            self._autocast.__exit__(None, None, None)

    def cleanup(self, runner: BaseRunner) -> None:
        super().cleanup(runner)
        if getattr(self, "_inside", False):  # The forward pass failed.
            self.after_forward(runner)

    def _evaluate(self, runner: BaseRunner) -> dict[str, Any]:
        with self._autocast:
            return super()._evaluate(runner)

    def _wrap_step(self, step: StepFunction, method: str) -> StepFunction:
        """Run the steps of evaluations under autocast."""
        if method == "train_step":
            return step

        def evaluate(batch: Any) -> dict[str, Any]:
            with self._autocast:
                return step(batch)

        return evaluate
