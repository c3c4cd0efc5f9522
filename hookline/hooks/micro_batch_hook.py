"""Repeat an iteration that runs out of memory in smaller parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from hookline.batches import count_samples
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.optim.groups import param_groups
from hookline.optim.micro_batches import run_in_parts
from hookline.rng import restore_rng, rng_state
from hookline.step import StepFunction


@HOOKS.register()
@dataclass
class MicroBatchHook(BaseHook):
    """Repeat an iteration that runs out of memory in parts, with the gradients of the whole batch.

    The parts are halved until they fit, and later iterations use the size that was found. The order
    of the data, the schedule and the number of steps stay the same. Losses must be means over
    samples, or state `num_tokens`. Batch norm sees the smaller parts. Evaluations have their own
    size. With several ranks only evaluations recover: an interrupted backward pass leaves the other
    ranks waiting.

    Attributes:
        size: Samples of a part in training. 0 until memory runs out.
        eval_size: Samples of a part in evaluations. 0 until memory runs out.

    Example:
        ```yaml
        hooks:
          - {type: MicroBatchHook}
        ```
    """

    size: int = state(0)
    eval_size: int = state(0)

    priority = Priority.LOWEST  # Random numbers are saved just before the forward pass.

    def before_run(self, runner: BaseRunner) -> None:
        runner.parallel.step_wrappers[self.name] = self._wrap_step
        runner.register_service("micro_batches", self)

    def before_train_iter(self, runner: BaseRunner) -> None:
        self._rng = rng_state()

    def _wrap_step(self, step: StepFunction, method: str) -> StepFunction:
        if method == "train_step":
            self._train_step = step
            return self._run_training
        return self._evaluation_of(step)

    def _run_training(self, batch: Any) -> dict[str, Any]:
        if self.runner.world.size > 1:
            return self._train_step(batch)
        return self._until_it_fits(lambda: self._attempt(batch), "size", batch)

    def _attempt(self, batch: Any) -> dict[str, Any]:
        if not self.size or count_samples({}, batch) <= self.size:
            return self._train_step(batch)
        groups = param_groups(self.runner.optimizer)
        parameters = [each for group in groups for each in group["params"]]
        return run_in_parts(self._train_step, batch, self.size, parameters)

    def run_again(self, batch: Any) -> dict[str, Any]:
        """Run a training step whose backward pass ran out of memory in smaller parts."""
        self.shrink(batch)
        restore_rng(self._rng)
        return self._run_training(batch)

    def shrink(self, batch: Any, name: str = "size") -> None:
        """Halve a size after memory ran out; raise OutOfMemoryError if it is 1 already."""
        samples = count_samples({}, batch)
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

    def _evaluation_of(self, step: StepFunction) -> StepFunction:
        def evaluate(batch: Any) -> dict[str, Any]:
            def attempt() -> dict[str, Any]:
                if not self.eval_size or count_samples({}, batch) <= self.eval_size:
                    return step(batch)
                return run_in_parts(step, batch, self.eval_size, ())

            return self._until_it_fits(attempt, "eval_size", batch)

        return evaluate

    def _until_it_fits(
        self, attempt: Callable[[], dict[str, Any]], name: str, batch: Any
    ) -> dict[str, Any]:
        while True:
            try:
                return attempt()
            except torch.OutOfMemoryError:
                pass  # Continue outside: here the error still holds memory.
            self.shrink(batch, name)
            if name == "size":
                restore_rng(self._rng)
