"""Repeat an iteration that runs out of memory in smaller parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from hookline.batches import count_samples
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import ConfigError, Suggestion, parameter_error
from hookline.optim.activations import activation_limit
from hookline.optim.groups import param_groups
from hookline.optim.micro_batches import (
    Gradients,
    differentiate_in_parts,
    evaluate_in_parts,
    known_loss,
)
from hookline.rng import restore_rng, rng_state
from hookline.step import Outputs, StepFunction


@HOOKS.register()
@dataclass
class MicroBatchHook(BaseHook):
    """Repeat an iteration that runs out of memory in parts, with the gradients of the whole batch.

    The parts are halved until they fit, and later iterations use the size that was found. The order
    of the data, the schedule and the number of steps stay the same. Losses must be means over
    samples, or state `num_tokens`. Batch norm sees the smaller parts. Evaluations have their own
    size.

    With several ranks, all of them repeat the iteration in the same parts. Each rank first runs
    its backward pass alone, then the gradients are averaged: communication does not overlap with
    it. Sharded models cannot be repeated.

    Args:
        activation_limit_mb: Memory for the tensors that a part keeps for its backward pass, in MB.
            A part that needs more counts as out of memory, also on a CPU. None has no limit but
            that of the device.

    Attributes:
        size: Samples of a part in training. 0 until memory runs out.
        eval_size: Samples of a part in evaluations. 0 until memory runs out.

    Example:
        ```yaml
        hooks:
          - {type: MicroBatchHook}
        ```
    """

    activation_limit_mb: float | None = None
    size: int = state(0)
    eval_size: int = state(0)

    priority = Priority.LOWEST  # After the hooks that change the model or step it.
    ranks = "collective"

    def __post_init__(self) -> None:
        if self.activation_limit_mb is not None and not self.activation_limit_mb > 0:
            raise parameter_error(self, "activation_limit_mb", "must be above 0")

    def before_run(self, runner: BaseRunner) -> None:
        problem = _find_obstacle(runner)
        if problem is not None:
            advice = Suggestion(advice=f"remove {self.name}, or use smaller batches")
            raise ConfigError(problem, component=self.name, suggestion=advice)
        runner.parallel.has_local_backward = True
        runner.parallel.step_wrappers[self.name] = self._wrap_step

    def _wrap_step(self, step: StepFunction, method: str) -> StepFunction:
        # The loss function counts the terms of its mean, unless the model has its own step.
        loss_fn = None if hasattr(self.runner.model, method) else self.runner.loss_fn
        if method == "train_step":
            return lambda batch: self._train(step, batch, loss_fn)
        return lambda batch: self._evaluate(step, batch, loss_fn)

    def _train(self, step: StepFunction, batch: Any, loss_fn: Any) -> Outputs:
        """Compute loss and gradients of a batch, in parts if it does not fit."""
        runner = self.runner
        if runner.parallel.strategy.options.get("broadcast_buffers", True):
            runner.world.broadcast_buffers(runner.model.buffers())  # as DDP does
        random_numbers = rng_state()
        buffers = [each.clone() for each in runner.model.buffers()]
        parameters = self._trained_parameters()
        while True:
            result = self._attempt(step, batch, parameters, loss_fn)
            samples = self._largest_failure(count_samples({}, batch), result is not None)
            if result is not None and not samples:
                break
            result = None  # It holds memory.
            self._shrink("size", samples)
            restore_rng(random_numbers)
            for buffer, value in zip(runner.model.buffers(), buffers, strict=True):
                buffer.copy_(value)
        outputs, gradients = result
        scale = self._scale_loss(torch.ones_like(outputs["loss"]))
        is_averaged = runner.world.size > 1
        loss = known_loss(outputs["loss"], parameters, gradients, scale, is_averaged)
        return {**outputs, "loss": loss}

    def _attempt(
        self, step: StepFunction, batch: Any, parameters: list[torch.Tensor], loss_fn: Any
    ) -> tuple[Outputs, Gradients] | None:
        """Return outputs and gradients of a batch; None if memory runs out."""
        weights = list(chain(parameters, self.runner.model.buffers()))

        def limited(part: Any) -> Outputs:
            with activation_limit(self.activation_limit_mb, weights):
                return step(part)

        size = self.size or count_samples({}, batch)
        try:
            return differentiate_in_parts(
                limited, batch, size, parameters, self._scale_loss, loss_fn
            )
        except torch.OutOfMemoryError:
            return None

    def _evaluate(self, step: StepFunction, batch: Any, loss_fn: Any) -> Outputs:
        samples = count_samples({}, batch)
        while True:
            try:
                return evaluate_in_parts(step, batch, self.eval_size or samples, loss_fn)
            except torch.OutOfMemoryError:
                pass  # Continue outside: here the error still holds memory.
            self._shrink("eval_size", samples)

    def _largest_failure(self, samples: int, has_fitted: bool) -> int:
        """Return the largest batch of all ranks if memory ran out on one of them, else 0."""
        answers = self.runner.world.gather_text(f"{samples} {int(has_fitted)}")
        pairs = [answer.split() for answer in answers]
        if all(fitted == "1" for _, fitted in pairs):
            return 0
        return max(int(count) for count, _ in pairs)

    def _shrink(self, name: str, samples: int) -> None:
        """Halve a size after memory ran out; raise OutOfMemoryError if it is 1 already."""
        current = min(getattr(self, name) or samples, samples)
        if current == 1:
            raise torch.OutOfMemoryError(f"{self.name}: a single sample does not fit into memory")
        setattr(self, name, (current + 1) // 2)
        self.runner.logger.warning(
            "%s: out of memory in iteration %d; continuing with %d samples at a time",
            self.name, self.runner.iter + 1, getattr(self, name),
        )  # fmt: skip
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _trained_parameters(self) -> list[torch.Tensor]:
        """Return the parameters of model and optimizers that need gradients, each once."""
        groups = param_groups(self.runner.optimizer)
        optimized = [each for group in groups for each in group["params"]]
        found = {id(each): each for each in chain(self.runner.model.parameters(), optimized)}
        return [each for each in found.values() if each.requires_grad]

    def _scale_loss(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss as the owner of `optimize` scales it."""
        for owner in self.runner.sites.hooks["optimize"]:
            if hasattr(owner, "scale_loss"):
                return owner.scale_loss(loss)  # type: ignore[no-any-return]
        return loss


def _find_obstacle(runner: BaseRunner) -> str | None:
    """Return the reason why iterations of a run cannot be repeated in parts, or None."""
    if runner.parallel.steps_itself:
        return "a model that steps its optimizers cannot repeat an iteration"
    reduction = getattr(runner.loss_fn, "reduction", "mean")
    if reduction != "mean":
        return f"needs a loss_fn with the reduction 'mean', not {reduction!r}"
    if runner.world.size == 1:
        return None
    if runner.parallel.strategy.kind != "ddp":
        return "the ranks of a sharded model cannot repeat an iteration on their own"
    if runner.parallel.has_own_ddp():
        return "cannot repeat an iteration of a model that contains DistributedDataParallel"
    if any(isinstance(each, torch.nn.SyncBatchNorm) for each in runner.model.modules()):
        return "the ranks of a model with SyncBatchNorm cannot repeat an iteration on their own"
    return None
