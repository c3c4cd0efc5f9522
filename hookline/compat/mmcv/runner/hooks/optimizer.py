"""Run backward and step the optimizer, in `after_train_iter`. A run has exactly one such hook."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from hookline.compat.mmcv.errors import require
from hookline.compat.mmcv.runner.fp16_utils import wrap_fp16_model
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.errors import RegistrationError
from hookline.optim.clipping import make_clip
from hookline.optim.graph import outside_graph
from hookline.optim.scaling import LossScaler, check_loss_scale


@HOOKS.register_module()
class OptimizerHook(Hook):
    """Resets the gradients, runs backward, clips and steps.

    Args:
        grad_clip: Arguments of `torch.nn.utils.clip_grad_norm_`; the norm is logged as `grad_norm`.
        detect_anomalous_params: Log the parameters on which the loss does not depend. This is slow
            and for debugging only.
    """

    reads_checkpoints = False

    def __init__(
        self, grad_clip: dict[str, Any] | None = None, detect_anomalous_params: bool = False
    ) -> None:
        self.grad_clip = grad_clip
        self.detect_anomalous_params = detect_anomalous_params
        self._clip = None if grad_clip is None else make_clip(type(self).__name__, grad_clip)

    def before_run(self, runner: Any) -> None:
        for other in runner.hooks:
            if isinstance(other, OptimizerHook) and other is not self:
                raise RegistrationError(
                    f"{self.name} and {other.name} would both run backward on the same loss; "
                    "register only one of them"
                )

    def clip_grads(self, params: Iterable[torch.nn.Parameter]) -> Any:
        """Clip the gradients and return their norm before, or None if there are none."""
        with_grad: Any = [
            param for param in params if param.requires_grad and param.grad is not None
        ]
        if not with_grad or self._clip is None:
            return None
        return self._clip(with_grad)

    def after_train_iter(self, runner: Any) -> None:
        runner.optimizer.zero_grad()
        if self.detect_anomalous_params:
            self.detect_anomalous_parameters(runner.outputs["loss"], runner)
        self._backward(runner.outputs["loss"])
        self._update(runner)

    def detect_anomalous_parameters(self, loss: torch.Tensor, runner: Any) -> None:
        for name in outside_graph(loss, runner.model.named_parameters()):
            message = f"{name} is not in the computational graph of the loss"
            runner.logger.log(level=logging.ERROR, msg=message)

    def _backward(self, loss: torch.Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def _update(self, runner: Any) -> None:
        """Clip and step, and call Hookline's sites."""
        runner.call_hook("after_backward")
        if self.grad_clip is not None:
            grad_norm = self.clip_grads(runner.model.parameters())
            if grad_norm is not None:
                runner.log_buffer.update(
                    {"grad_norm": float(grad_norm)}, runner.outputs.get("num_samples", 1)
                )
        if self._step(runner):
            runner.end_optimizer_step()

    def _step(self, runner: Any) -> bool:
        runner.optimizer.step()
        return True


class _Cumulative(OptimizerHook):
    """Accumulates the gradients of `cumulative_iters` iterations before each step."""

    def __init__(self, cumulative_iters: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        is_valid = isinstance(cumulative_iters, int) and cumulative_iters > 0
        expected = "must be a whole number of at least 1"
        require(is_valid, self, "cumulative_iters", expected, cumulative_iters)
        self.cumulative_iters = cumulative_iters
        self.divisible_iters = 0
        self.remainder_iters = 0
        self.initialized = False

    def has_batch_norm(self, module: torch.nn.Module) -> bool:
        return any(isinstance(part, _BatchNorm) for part in module.modules())

    def _init(self, runner: Any) -> None:
        if runner.iter % self.cumulative_iters:
            runner.logger.warning(
                "%s: iteration %d is not the first of a group; its gradients are incomplete",
                self.name,
                runner.iter,
            )
        if self.has_batch_norm(runner.model) and self.cumulative_iters > 1:
            runner.logger.warning(
                "%s: the statistics of batch norm are those of single batches", self.name
            )
        self.divisible_iters = runner.max_iters // self.cumulative_iters * self.cumulative_iters
        self.remainder_iters = runner.max_iters - self.divisible_iters
        self.initialized = True

    def _get_loss_factor(self, runner: Any) -> int:
        """Return the number of iterations in the group, which is smaller at the end of the run."""
        return self.cumulative_iters if runner.iter < self.divisible_iters else self.remainder_iters

    def after_train_iter(self, runner: Any) -> None:
        if not self.initialized:
            self._init(runner)
            runner.optimizer.zero_grad()
        self._backward(runner.outputs["loss"] / self._get_loss_factor(runner))
        ends_group = self.every_n_iters(runner, self.cumulative_iters)
        runner.loop.accumulating = not (ends_group or self.is_last_iter(runner))
        if not runner.loop.accumulating:
            self._update(runner)
            runner.optimizer.zero_grad()


@HOOKS.register_module()
class GradientCumulativeOptimizerHook(_Cumulative):
    """Accumulates the gradients of `cumulative_iters` iterations, then clips and steps."""


@HOOKS.register_module()
class Fp16OptimizerHook(OptimizerHook):
    """Scales the loss of a model whose methods are decorated with `auto_fp16`.

    A step with infinite gradients is skipped. DDP averages the gradients, so `coalesce`,
    `bucket_size_mb` and `distributed` are ignored.

    Args:
        loss_scale: A number, `dynamic`, or the options of `torch.amp.GradScaler`.
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
        self.coalesce = coalesce
        self.bucket_size_mb = bucket_size_mb
        self.distributed = distributed
        self.loss_scale = loss_scale

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
    """A GradientCumulativeOptimizerHook that also scales the loss, as Fp16OptimizerHook does."""
