"""Hooks that own the site `optimize`: backward pass, clipping, optimizer step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.batches import count_samples
from hookline.diagnosis import describe_bad_loss
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import ConfigError, add_note, require_at_least
from hookline.optim.clipping import make_clip
from hookline.optim.fp16 import enable_fp16
from hookline.optim.graph import outside_graph, without_gradient
from hookline.optim.scaling import LossScaler, check_loss_scale
from hookline.optim.sync import gradient_sync
from hookline.signature import parameters


@HOOKS.register()
@dataclass
class OptimizerHook(BaseHook):
    """Run backward, clip the gradients, step the optimizer and clear the gradients.

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

    grad_clip: dict[str, Any] | None = None
    detect_anomalous_params: bool = False

    priority = Priority.ABOVE_NORMAL

    def __post_init__(self) -> None:
        self._clip = None
        if self.grad_clip is not None:
            self._clip = make_clip(type(self).__name__, self.grad_clip)
        self._reported: list[str] = []

    def before_train(self, runner: BaseRunner) -> None:
        if isinstance(runner.optimizer, Mapping):
            raise ConfigError(
                "steps exactly one optimizer: give the model a train_step that steps several, and "
                "drop this hook",
                component=self.name,
            )
        assert runner.optimizer is not None
        if "closure" in parameters(runner.optimizer.step).required():
            raise ConfigError(
                f"cannot step {type(runner.optimizer).__name__}, whose step() needs a closure: "
                "step it in the model's train_step(batch, optimizer), and pass "
                "hooks=[ManualOptimizationHook()]",
                component=self.name,
            )
        self._collect_parameters(runner.optimizer)
        runner.optimizer.zero_grad(set_to_none=True)

    def optimize(self, runner: BaseRunner) -> None:
        self._differentiate(runner)
        self._finish(runner)

    def _differentiate(self, runner: BaseRunner, weight: float = 1.0) -> None:
        """Run the backward pass of the loss, times a weight."""
        loss = runner.outputs["loss"]
        if self.detect_anomalous_params:
            names = outside_graph(loss, runner.model.named_parameters())
            self._report(runner, "outside the graph of the loss", names)
        try:
            self._backward(loss if weight == 1.0 else loss * weight)
        except Exception as error:
            _explain(error, loss, runner.model)
            raise

    def _backward(self, loss: torch.Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def _collect_parameters(self, optimizer: torch.optim.Optimizer) -> None:
        self._group_count = len(optimizer.param_groups)
        self._params = [p for group in optimizer.param_groups for p in group["params"]]

    def _finish(self, runner: BaseRunner) -> None:
        """Clip complete gradients, step the optimizer and clear the gradients."""
        optimizer: torch.optim.Optimizer = runner.optimizer  # type: ignore[assignment]
        if self.detect_anomalous_params:
            names = without_gradient(runner.model.named_parameters())
            self._report(runner, "without a gradient", names)
        for call in runner.sites.after_backward:
            call(runner)
        if self._clip is not None:
            if len(optimizer.param_groups) != self._group_count:  # A hook has added one.
                self._collect_parameters(optimizer)
            runner.events.put_iteration_scalar("grad_norm", self._clip(self._params))
        if self._step(optimizer):
            runner.optimizer_steps += 1
            for call in runner.sites.after_optimizer_step:
                call(runner)
        optimizer.zero_grad(set_to_none=True)

    def _step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Step the optimizer; return False if the step was skipped."""
        optimizer.step()
        return True

    def _report(self, runner: BaseRunner, condition: str, names: list[str]) -> None:
        message = f"parameters {condition}: {', '.join(names)}"
        if names and message not in self._reported:  # Most iterations repeat it.
            self._reported.append(message)
            runner.logger.error("iteration %d: %s", runner.iter + 1, message)


@HOOKS.register()
@dataclass
class GradientCumulativeOptimizerHook(OptimizerHook):
    """Accumulate the gradients of several iterations before each optimizer step.

    The step uses the mean over all samples, as one large batch would, even if a batch or the last
    group of an epoch is smaller. In a distributed run, only loaders that Hookline divides know the
    size of a batch over all ranks. Batches of other loaders count equally.

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
        self._batches = 0  # in the group of iterations so far
        self._first_size = 0.0  # samples of the group's first batch
        self._weight = 0.0  # sum of the weights of the group's batches

    def before_train(self, runner: BaseRunner) -> None:
        super().before_train(runner)
        self._begin(runner)
        self._sync = None
        if runner.epoch_length is not None:  # Otherwise any iteration may be the last one.
            self._sync = gradient_sync(runner.parallel.train_module)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        super().after_load_checkpoint(runner)
        self._begin(runner)  # A rollback may happen inside a group.
        runner.optimizer.zero_grad(set_to_none=True)  # type: ignore[union-attr]

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self._sync is not None:
            self._sync(self._is_last_of_group(runner))

    def optimize(self, runner: BaseRunner) -> None:
        weight = self._weigh(runner)
        self._differentiate(runner, weight)
        is_complete = self._is_last_of_group(runner)
        self._batches += 1
        self._weight += weight
        runner.loop.accumulating = not is_complete
        if is_complete:
            self._finish(runner)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if runner.loop.accumulating:  # A loader without a length has ended.
            self._finish(runner)

    def _finish(self, runner: BaseRunner) -> None:
        if self._weight != 1.0:
            self._collect_parameters(runner.optimizer)  # type: ignore[arg-type]
            gradients = [p.grad for p in self._params if p.grad is not None]
            torch._foreach_mul_(gradients, 1.0 / self._weight)
        self._begin(runner)
        super()._finish(runner)

    def _begin(self, runner: BaseRunner) -> None:
        """Begin a new group of iterations."""
        self._batches = 0
        self._first_size = 0.0
        self._weight = 0.0
        runner.loop.accumulating = False

    def _weigh(self, runner: BaseRunner) -> float:
        """Return the weight of the batch in its group; it must be the same on all ranks."""
        loader: Any = runner.train_loader
        size = 1.0
        if runner.world.size == 1:
            size = float(count_samples(runner.outputs, runner.batch))
        elif self.end_of_epoch(runner) and hasattr(loader, "last_weight"):
            size = loader.last_weight()
        self._first_size = self._first_size or size
        return size / self._first_size

    def _is_last_of_group(self, runner: BaseRunner) -> bool:
        """Return whether the current iteration is the last one of its group."""
        return (
            self._batches + 1 >= self.cumulative_iters
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
        self._scaler = LossScaler(runner.device.type, self.loss_scale)
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
        self._scaler.attach(runner.optimizer)  # type: ignore[arg-type]

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        runner.checkpoint["scaler"] = self._scaler.state_dict()

    def cleanup(self, runner: BaseRunner) -> None:
        if hasattr(self, "_scaler"):
            self._scaler.detach()

    def _backward(self, loss: torch.Tensor) -> None:
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def _finish(self, runner: BaseRunner) -> None:
        self._scaler.unscale(runner.optimizer)  # type: ignore[arg-type]
        super()._finish(runner)

    def _step(self, optimizer: torch.optim.Optimizer) -> bool:
        if self._scaler.step(optimizer):
            return True
        self.skipped_steps += 1
        self.runner.events.put_scalar("skipped_steps", self.skipped_steps, smoothing_hint=False)
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

    Backward, optimizer and evaluation run outside autocast. `float16` comes with loss scaling,
    `bfloat16` needs none.

    Args:
        dtype: Data type of autocast.

    Example:
        ```yaml
        hooks:
          - {type: AmpOptimizerHook, dtype: bfloat16, grad_clip: {max_norm: 1.0}}
        ```
    """

    dtype: Literal["bfloat16", "float16"] = "bfloat16"
    loss_scale: float | str | dict[str, Any] = "dynamic"

    priority = Priority.LOWEST  # Innermost: no other hook runs under autocast.

    def before_run(self, runner: BaseRunner) -> None:
        device = runner.device.type
        self._scaler = LossScaler(device, self.loss_scale, enabled=self.dtype == "float16")
        self._autocast = torch.autocast(device, dtype=getattr(torch, self.dtype))
        self._inside = False

    def before_train_iter(self, runner: BaseRunner) -> None:
        super().before_train_iter(runner)
        self._autocast.__enter__()  # type: ignore[no-untyped-call]
        self._inside = True

    def after_forward(self, runner: BaseRunner) -> None:
        self._inside = False
        self._autocast.__exit__(None, None, None)

    def cleanup(self, runner: BaseRunner) -> None:
        super().cleanup(runner)
        if getattr(self, "_inside", False):  # The forward pass failed.
            self.after_forward(runner)


def _explain(error: Exception, loss: Any, model: torch.nn.Module) -> None:
    """Add a note on the reasons why a loss cannot be backpropagated."""
    problem = describe_bad_loss(loss)
    if problem is not None:
        add_note(error, f"hookline: {problem}")
    if hasattr(model, "train_step"):
        add_note(
            error,
            "hookline: if train_step runs backward and steps the optimizer itself, register "
            "ManualOptimizationHook() in place of OptimizerHook",
        )
