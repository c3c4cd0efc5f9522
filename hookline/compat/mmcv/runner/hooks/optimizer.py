"""From the loss to changed weights, in `after_train_iter`. A run has exactly one of these hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from hookline.compat.mmcv.runner.fp16_utils import wrap_fp16_model
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.errors import RegistrationError
from hookline.optim.clipping import make_clip
from hookline.optim.graph import outside_graph
from hookline.optim.scaling import LossScaler, check_loss_scale


@HOOKS.register_module()
class OptimizerHook(Hook):
    """zero_grad, backward, clip, step.

    `grad_clip` takes the arguments of `torch.nn.utils.clip_grad_norm_`; the norm is logged as `grad_norm`.
    `detect_anomalous_params` logs the parameters that the loss does not depend on; it is slow and for debugging only.
    """

    def __init__(self, grad_clip: dict[str, Any] | None = None, detect_anomalous_params: bool = False) -> None:
        self.grad_clip = grad_clip
        self.detect_anomalous_params = detect_anomalous_params
        self._clip = None if grad_clip is None else make_clip(type(self).__name__, grad_clip)

    def before_run(self, runner: Any) -> None:
        rival = next((hook for hook in runner.hooks if isinstance(hook, OptimizerHook) and hook is not self), None)
        if rival is not None:  # else: "Trying to backward through the graph a second time"
            raise RegistrationError(f"{self.name} and {rival.name} would both run backward on the same loss: register only one of them")

    def clip_grads(self, params: Iterable[torch.nn.Parameter]) -> Any:
        """Clip the gradients; their norm before that, or None where there are none."""
        with_grad = [param for param in params if param.requires_grad and param.grad is not None]
        return self._clip(with_grad) if with_grad and self._clip is not None else None  # type: ignore[arg-type]

    def after_train_iter(self, runner: Any) -> None:
        runner.optimizer.zero_grad()
        if self.detect_anomalous_params:
            self.detect_anomalous_parameters(runner.outputs["loss"], runner)
        self._backward(runner.outputs["loss"])
        self._update(runner)

    def detect_anomalous_parameters(self, loss: torch.Tensor, runner: Any) -> None:
        for name in outside_graph(loss, runner.model.named_parameters()):
            runner.logger.error("%s is not in the computational graph of the loss", name)

    def _backward(self, loss: torch.Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def _update(self, runner: Any) -> None:
        """Clip and step, with Hookline's sites around."""
        runner.call_hook("after_backward")
        if self.grad_clip is not None:
            grad_norm = self.clip_grads(runner.model.parameters())
            if grad_norm is not None:
                runner.log_buffer.update({"grad_norm": float(grad_norm)}, runner.outputs.get("num_samples", 1))
        if self._step(runner):
            runner.optimizer_steps += 1
            runner.call_hook("after_optimizer_step")

    def _step(self, runner: Any) -> bool:
        runner.optimizer.step()
        return True


class _Cumulative(OptimizerHook):
    """Adds up the gradients of `cumulative_iters` iterations before each step."""

    def __init__(self, cumulative_iters: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(cumulative_iters, int) or cumulative_iters < 1:
            raise ValueError(f"{type(self).__name__}: cumulative_iters must be a whole number of at least 1, got {cumulative_iters!r}")
        self.cumulative_iters = cumulative_iters
        self.divisible_iters = self.remainder_iters = 0
        self.initialized = False

    def has_batch_norm(self, module: torch.nn.Module) -> bool:
        return any(isinstance(part, _BatchNorm) for part in module.modules())

    def _init(self, runner: Any) -> None:
        if runner.iter % self.cumulative_iters:
            runner.logger.warning("%s: iteration %d is not the first of a group; its gradients are incomplete", self.name, runner.iter)
        if self.has_batch_norm(runner.model) and self.cumulative_iters > 1:
            runner.logger.warning("%s: the statistics of batch norm are those of single batches", self.name)
        self.divisible_iters = runner.max_iters // self.cumulative_iters * self.cumulative_iters
        self.remainder_iters = runner.max_iters - self.divisible_iters
        self.initialized = True

    def _get_loss_factor(self, runner: Any) -> int:
        """What the loss is divided by: the number of iterations in the group, which may be smaller at the end of the run."""
        return self.cumulative_iters if runner.iter < self.divisible_iters else self.remainder_iters

    def after_train_iter(self, runner: Any) -> None:
        if not self.initialized:
            self._init(runner)
            runner.optimizer.zero_grad()
        self._backward(runner.outputs["loss"] / self._get_loss_factor(runner))
        runner.accumulating = not (self.every_n_iters(runner, self.cumulative_iters) or self.is_last_iter(runner))
        if not runner.accumulating:
            self._update(runner)
            runner.optimizer.zero_grad()


@HOOKS.register_module()
class GradientCumulativeOptimizerHook(_Cumulative):
    """Add up the gradients of `cumulative_iters` iterations, then clip and step."""


@HOOKS.register_module()
class Fp16OptimizerHook(OptimizerHook):
    """Scale the loss of a model whose methods are decorated with `auto_fp16`; a step with infinite gradients is left out.

    `loss_scale` is a number, `dynamic`, or the options of `torch.amp.GradScaler`. Gradients are averaged by DDP, so that
    `coalesce`, `bucket_size_mb` and `distributed` change nothing.
    """

    def __init__(
        self,
        grad_clip: dict[str, Any] | None = None,
        coalesce: bool = True,
        bucket_size_mb: int = -1,
        loss_scale: float | str | dict[str, Any] = 512.0,
        distributed: bool = True,
    ) -> None:
        super().__init__(grad_clip)
        check_loss_scale(type(self).__name__, loss_scale)
        self.coalesce, self.bucket_size_mb, self.distributed, self.loss_scale = coalesce, bucket_size_mb, distributed, loss_scale

    def before_run(self, runner: Any) -> None:
        super().before_run(runner)
        wrap_fp16_model(runner.model)
        self.loss_scaler = LossScaler(runner.device.type, self.loss_scale)
        self.loss_scaler.attach(runner.optimizer)
        self.loss_scaler.load_state_dict((runner.meta or {}).get("fp16", {}).get("loss_scaler", {}))

    def cleanup(self, runner: Any) -> None:
        if hasattr(self, "loss_scaler"):
            self.loss_scaler.detach()

    def _backward(self, loss: torch.Tensor) -> None:
        self.loss_scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def _update(self, runner: Any) -> None:
        self.loss_scaler.unscale(runner.optimizer)
        super()._update(runner)
        if runner.meta is None:
            runner.meta = {}
        runner.meta.setdefault("fp16", {})["loss_scaler"] = self.loss_scaler.state_dict()

    def _step(self, runner: Any) -> bool:
        return self.loss_scaler.step(runner.optimizer)


@HOOKS.register_module()
class GradientCumulativeFp16OptimizerHook(_Cumulative, Fp16OptimizerHook):
    """GradientCumulativeOptimizerHook and Fp16OptimizerHook in one."""
