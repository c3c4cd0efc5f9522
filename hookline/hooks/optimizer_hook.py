"""The owners of `optimize`: from the loss to changed weights. A run has exactly one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.engine.step import wrong_loss
from hookline.errors import add_note
from hookline.optim.clipping import make_clip
from hookline.optim.fp16 import enable_fp16
from hookline.optim.graph import outside_graph, without_gradient
from hookline.optim.scaling import LossScaler, check_loss_scale
from hookline.optim.sync import gradient_sync


@HOOKS.register()
@dataclass
class OptimizerHook(BaseHook):
    """Backward, clipping of gradients, step, zero_grad, once an iteration.

    `grad_clip` takes the arguments of `torch.nn.utils.clip_grad_norm_` (`max_norm`, `norm_type`) or `{clip_value: …}`; the
    norm is recorded as `grad_norm`. `detect_anomalous_params` names the parameters that the loss does not depend on and
    those that got no gradient; it is slow and for debugging only.
    """

    grad_clip: dict[str, Any] | None = None
    detect_anomalous_params: bool = False

    priority = Priority.ABOVE_NORMAL

    def __post_init__(self) -> None:
        self._clip = None if self.grad_clip is None else make_clip(type(self).__name__, self.grad_clip)
        self._reported: list[str] = []

    def before_train(self, runner: BaseRunner) -> None:
        if isinstance(runner.optimizer, Mapping):
            raise ValueError(f"{self.name} steps one optimizer; a model with several steps them in its own train_step")
        assert runner.optimizer is not None
        self._params = [p for group in runner.optimizer.param_groups for p in group["params"]]
        runner.optimizer.zero_grad(set_to_none=True)

    def optimize(self, runner: BaseRunner) -> None:
        loss = runner.outputs["loss"]
        if self.detect_anomalous_params:
            self._report(runner, "outside the graph of the loss", outside_graph(loss, runner.model.named_parameters()))
        try:
            self._backward(loss)
        except Exception as error:
            _explain(error, loss)
            raise
        self._finish(runner)

    def _backward(self, loss: torch.Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def _finish(self, runner: BaseRunner) -> None:
        """From complete gradients to changed weights."""
        optimizer: torch.optim.Optimizer = runner.optimizer  # type: ignore[assignment]
        if self.detect_anomalous_params:
            self._report(runner, "without a gradient", without_gradient(runner.model.named_parameters()))
        for call in runner.sites.after_backward:
            call(runner)
        if self._clip is not None:
            runner.events.put_scalar("grad_norm", self._clip(self._params))
        if self._step(optimizer):
            runner.optimizer_steps += 1
            for call in runner.sites.after_optimizer_step:
                call(runner)
        optimizer.zero_grad(set_to_none=True)

    def _step(self, optimizer: torch.optim.Optimizer) -> bool:
        optimizer.step()
        return True

    def _report(self, runner: BaseRunner, what: str, names: list[str]) -> None:
        message = f"parameters {what}: {', '.join(names)}"
        if names and message not in self._reported:  # once, for it is the same in most iterations
            self._reported.append(message)
            runner.logger.error("iteration %d: %s", runner.iter + 1, message)


@HOOKS.register()
@dataclass
class GradientCumulativeOptimizerHook(OptimizerHook):
    """Add up the gradients of `cumulative_iters` iterations, then step with their mean over the samples.

    An epoch's last group may have fewer batches, and a batch fewer samples: the result is that of one large batch. With several
    processes only a loader that Hookline divides can say how large a batch is over all of them; of any other all count the same.
    """

    cumulative_iters: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cumulative_iters < 1:
            raise ValueError(f"{type(self).__name__}: cumulative_iters must be at least 1, got {self.cumulative_iters}")
        self._batches, self._first, self._weight = 0, 0.0, 0.0  # of the group so far: batches, size of the first, sum of weights

    def before_train(self, runner: BaseRunner) -> None:
        super().before_train(runner)
        self._begin(runner)
        # Where an epoch's end comes as a surprise no iteration can be known to be an inner one.
        self._sync = gradient_sync(runner.parallel.called) if runner.epoch_length is not None else None

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        super().after_load_checkpoint(runner)
        self._begin(runner)  # a run that goes back to a checkpoint may be amid a group
        runner.optimizer.zero_grad(set_to_none=True)  # type: ignore[union-attr]

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self._sync is not None:
            self._sync(self._completes(runner))

    def optimize(self, runner: BaseRunner) -> None:
        loss = runner.outputs["loss"]
        if self.detect_anomalous_params:
            self._report(runner, "outside the graph of the loss", outside_graph(loss, runner.model.named_parameters()))
        weight = self._weigh(runner)
        try:
            self._backward(loss if weight == 1.0 else loss * weight)
        except Exception as error:
            _explain(error, loss)
            raise
        complete = self._completes(runner)
        self._batches += 1
        self._weight += weight
        runner.accumulating = not complete
        if complete:
            self._finish(runner)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if runner.accumulating:  # a loader without a length has ended
            self._finish(runner)

    def _finish(self, runner: BaseRunner) -> None:
        if self._weight != 1.0:
            torch._foreach_mul_([p.grad for p in self._params if p.grad is not None], 1.0 / self._weight)
        self._begin(runner)
        super()._finish(runner)

    def _begin(self, runner: BaseRunner) -> None:
        self._batches, self._first, self._weight = 0, 0.0, 0.0
        runner.accumulating = False

    def _weigh(self, runner: BaseRunner) -> float:
        """How much the batch counts in its group: the same on all processes, or their weights would part."""
        loader: Any = runner.train_loader
        size = 1.0
        if runner.world.size == 1:
            size = float(_sample_count(runner))
        elif self.end_of_epoch(runner) and hasattr(loader, "last_weight"):
            size = loader.last_weight()
        self._first = self._first or size
        return size / self._first

    def _completes(self, runner: BaseRunner) -> bool:
        """Whether the current iteration is its group's last one."""
        return self._batches + 1 >= self.cumulative_iters or self.end_of_epoch(runner) or self.is_last_iter(runner)


@HOOKS.register()
@dataclass
class Fp16OptimizerHook(OptimizerHook):
    """Scale the loss, for models whose methods are decorated with `auto_fp16`; a step with infinite gradients is left out.

    `loss_scale` is a fixed number, `dynamic`, or the options of `torch.amp.GradScaler`. AmpOptimizerHook is for any model.
    """

    loss_scale: float | str | dict[str, Any] = 512.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_loss_scale(type(self).__name__, self.loss_scale)
        self._skipped = 0

    def before_run(self, runner: BaseRunner) -> None:
        self._scaler = LossScaler(runner.device.type, self.loss_scale)
        if not enable_fp16(runner.model):
            runner.logger.warning(
                "%s: no method has auto_fp16, so the model runs in full precision; AmpOptimizerHook needs none", self.name
            )

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if runner.checkpoint is not None and runner.resuming:
            self._scaler.load_state_dict(runner.checkpoint.get("scaler", {}))

    def before_train(self, runner: BaseRunner) -> None:
        super().before_train(runner)
        self._scaler.attach(runner.optimizer)  # type: ignore[arg-type]  # not several, as just checked

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
        self._skipped += 1
        self.runner.events.put_scalar("skipped_steps", self._skipped, smoothing_hint=False)
        return False


@HOOKS.register()
@dataclass
class GradientCumulativeFp16OptimizerHook(GradientCumulativeOptimizerHook, Fp16OptimizerHook):
    """GradientCumulativeOptimizerHook and Fp16OptimizerHook in one."""


@HOOKS.register()
@dataclass
class AmpOptimizerHook(GradientCumulativeOptimizerHook, Fp16OptimizerHook):
    """Run the training step of any model under `torch.autocast`; float16 comes with loss scaling, bfloat16 needs none.

    Backward, the optimizer and evaluation stay outside of it.
    """

    dtype: Literal["bfloat16", "float16"] = "bfloat16"
    loss_scale: float | str | dict[str, Any] = "dynamic"

    priority = Priority.LOWEST  # the last before the forward and the first after it, so that no other hook is inside

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
        if getattr(self, "_inside", False):  # the forward failed
            self.after_forward(runner)


def _explain(error: Exception, loss: Any) -> None:
    """Tell what the loss is, where that is why there is no way back from it."""
    if (wrong := wrong_loss(loss)) is not None:
        add_note(error, f"hookline: {wrong}")


def _sample_count(runner: BaseRunner) -> int:
    """How many samples the batch has: as the model says, or its targets, or the first part of the batch; 1 if nothing tells."""
    given = runner.outputs.get("num_samples")
    if given is not None:
        return int(given)
    part = runner.outputs.get("targets")
    if part is None:
        batch = runner.batch
        part = next(iter(batch.values()), None) if isinstance(batch, Mapping) else batch[0] if isinstance(batch, (list, tuple)) else batch
    try:
        return len(part) or 1  # type: ignore[arg-type]
    except TypeError:
        return 1
