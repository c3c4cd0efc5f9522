"""Base class of hooks that own the site `optimize`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hookline.diagnosis import describe_bad_loss
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.errors import add_note
from hookline.module_names import named_parameters
from hookline.optim.clipping import make_clip
from hookline.optim.graph import outside_graph, without_gradient
from hookline.optim.grouping import check_disjoint
from hookline.optim.joint import as_one, needs_closure
from hookline.optim.snapshots import GradientSnapshot
from hookline.optim.weighing import Number, rank_weight
from hookline.step import build_step


def count_steps(runner: BaseRunner) -> int | None:
    """Return the number of optimizer steps of the whole run; None if it is not known."""
    owners = runner.sites.hooks["optimize"]
    if runner.max_iters is None or not all(isinstance(each, OptimizingHook) for each in owners):
        return None
    period = max((getattr(each, "cumulative_iters", 1) for each in owners), default=1)
    # A group of iterations ends with the epoch.
    epochs, rest = divmod(runner.max_iters, runner.epoch_length or runner.max_iters)
    in_epoch = math.ceil((runner.epoch_length or runner.max_iters) / period)
    return epochs * in_epoch + math.ceil(rest / period)


@dataclass
class OptimizingHook(BaseHook):
    """Base of the owners of `optimize`: backward, clipping, the steps of all optimizers."""

    grad_clip: dict[str, Any] | None = None
    detect_anomalous_params: bool = False

    priority = Priority.ABOVE_NORMAL

    def __post_init__(self) -> None:
        self._clip = None
        if self.grad_clip is not None:
            self._clip = make_clip(type(self).__name__, self.grad_clip)
        self._reported: list[str] = []

    def before_train(self, runner: BaseRunner) -> None:
        assert runner.optimizer is not None
        if isinstance(runner.optimizer, Mapping):
            check_disjoint(runner.optimizer, runner.model)
        self._optimizer = as_one(runner.optimizer)
        self._needs_closure = needs_closure(self._optimizer)
        self._group_count = 0
        self._collect_parameters(runner)
        self._optimizer.zero_grad(set_to_none=True)

    def optimize(self, runner: BaseRunner) -> None:
        weight = 1.0 if runner.world.size == 1 else rank_weight(runner.outputs, runner.world)
        self._differentiate(runner, weight)
        self._finish(runner)

    def _differentiate(self, runner: BaseRunner, weight: Number = 1.0) -> None:
        """Run the backward pass of the loss, times a weight."""
        loss = runner.outputs["loss"]
        if self.detect_anomalous_params:
            names = outside_graph(loss, named_parameters(runner.model))
            self._report(runner, "outside the graph of the loss", names)
        is_weighted = isinstance(weight, torch.Tensor) or weight != 1.0
        try:
            self.scale_loss(loss * weight if is_weighted else loss).backward()  # type: ignore[no-untyped-call]
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            _explain(error, loss, runner.model)
            raise

    def scale_loss(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss as the backward pass takes it: scaled, if the hook scales losses."""
        return loss

    def _collect_parameters(self, runner: BaseRunner) -> None:
        """List the parameters of all groups again if a hook has added a group.

        They are in the order of the model, so that their norm does not depend on the groups.
        """
        groups = self._optimizer.param_groups
        if len(groups) == self._group_count:
            return
        self._group_count = len(groups)
        positions = {id(each): index for index, each in enumerate(runner.model.parameters())}
        params = [each for group in groups for each in group["params"]]
        self._params = sorted(params, key=lambda each: positions.get(id(each), len(positions)))

    def _finish(self, runner: BaseRunner) -> None:
        """Clip complete gradients, step the optimizers and clear the gradients."""
        if self.detect_anomalous_params:
            names = without_gradient(named_parameters(runner.model))
            self._report(runner, "without a gradient", names)
        for call in runner.sites.after_backward:
            call(runner)
        if self._clip is not None:
            self._collect_parameters(runner)
            runner.events.put_iteration_scalar("grad_norm", self._clip(self._params))
        if self._step(runner):
            runner.optimizer_steps += 1
            for call in runner.sites.after_optimizer_step:
                call(runner)
        self._optimizer.zero_grad(set_to_none=True)

    def _step(self, runner: BaseRunner) -> bool:
        """Step the optimizers; return False if the step was skipped."""
        if self._needs_closure:
            self._step_with_closure(runner)
        else:
            self._optimizer.step()
        return True

    def _step_with_closure(self, runner: BaseRunner) -> None:
        """Step an optimizer that evaluates the batch itself, once or several times.

        The first evaluation is known, unless the optimizer has moved the weights or cleared the
        gradients before it.
        """
        self._collect_parameters(runner)
        outputs = runner.outputs
        known: GradientSnapshot | None = GradientSnapshot(self._params)

        def closure() -> torch.Tensor:
            nonlocal known
            if known is None or not known.is_current():
                self._repeat(runner)
                if self._clip is not None:
                    self._clip(self._params)
            known = None
            loss = runner.outputs["loss"].detach()
            return runner.world.gather_numbers(loss).mean() if runner.world.size > 1 else loss

        self._optimizer.step(closure)
        runner.outputs = outputs

    def _repeat(self, runner: BaseRunner) -> None:
        """Clear the gradients, and compute loss and gradients of the batch again."""
        self._optimizer.zero_grad(set_to_none=True)
        runner.outputs = self._evaluate(runner)
        for call in runner.sites.after_forward:
            call(runner)
        self._differentiate(runner, rank_weight(runner.outputs, runner.world))

    def _evaluate(self, runner: BaseRunner) -> dict[str, Any]:
        """Run the model on the batch again."""
        return build_step(runner, "train_step")(runner.batch)

    def _report(self, runner: BaseRunner, condition: str, names: list[str]) -> None:
        message = f"parameters {condition}: {', '.join(names)}"
        if names and message not in self._reported:  # Most iterations repeat it.
            self._reported.append(message)
            runner.logger.error("iteration %d: %s", runner.iter + 1, message)


def _explain(error: Exception, loss: Any, model: torch.nn.Module) -> None:
    """Add a note on the reasons why a loss cannot be backpropagated."""
    problem = describe_bad_loss(loss)
    if problem is not None:
        add_note(error, f"hookline: {problem}")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        add_note(error, "hookline: all parameters of the model are frozen: none requires grad")
    if hasattr(model, "train_step"):
        add_note(
            error,
            "hookline: if train_step runs backward and steps the optimizer itself, register "
            "ManualOptimizationHook() in place of OptimizerHook",
        )
