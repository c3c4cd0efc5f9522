"""Abort training when the loss is NaN or infinite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import HooklineError, InvalidLoss, Suggestion, require_at_least


@HOOKS.register()
@dataclass
class CheckInvalidLossHook(BaseHook):
    """Abort training with an error when the loss is NaN or infinite.

    A check covers all losses since the previous one, and the error names the first bad iteration
    and the newest good checkpoint. An infinite loss whose step the loss scaler skipped is accepted,
    except in the last iteration. RollbackHook replaces this hook and recovers from such a loss.

    Args:
        interval: Number of iterations between two checks, which wait for the device. There is
            another one after each epoch.

    Example:
        ```yaml
        hooks:
          - {type: CheckInvalidLossHook, interval: 1}
        ```
    """

    interval: int = 50

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")
        # Of each iteration since the last check: its number, loss, whether gradients accumulate,
        # and the optimizer steps after it.
        self._seen: list[tuple[int, torch.Tensor, bool, int]] = []
        self._last: tuple[int, torch.Tensor] | None = None
        self._steps = 0  # at the end of the last group of iterations with a step

    def before_train(self, runner: BaseRunner) -> None:
        self._forget(runner)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        self._forget(runner)  # A rollback discards the iterations since the checkpoint.

    def after_train_iter(self, runner: BaseRunner) -> None:
        loss = runner.outputs.get("loss")
        if loss is None:
            return
        is_number = isinstance(loss, torch.Tensor) and loss.ndim == 0
        number = loss.detach() if is_number else _one_number(loss)
        iteration = runner.iter + 1
        self._seen.append((iteration, number, runner.loop.accumulating, runner.optimizer_steps))
        if iteration % self.interval == 0:
            self._check(runner, self._take_effective(runner))

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._check(runner, self._take_effective(runner))

    def after_train(self, runner: BaseRunner) -> None:
        losses = self._take_effective(runner)
        self._check(runner, losses if self._last is None else [*losses, self._last])

    def _forget(self, runner: BaseRunner) -> None:
        self._seen = []
        self._last = None
        self._steps = runner.optimizer_steps

    def _take_effective(self, runner: BaseRunner) -> list[tuple[int, torch.Tensor]]:
        """Return the losses since the last check, without those whose step was skipped.

        The loss scaler may have skipped a step, and with it the effect of these losses. Losses of
        an unfinished group of iterations stay for the next check.
        """
        is_stepped = bool(runner.sites.optimize)
        losses: list[tuple[int, torch.Tensor]] = []
        group: list[tuple[int, torch.Tensor]] = []
        finished = 0
        for index, (iteration, loss, is_accumulating, steps) in enumerate(self._seen, 1):
            self._last = (iteration, loss)
            group.append(self._last)
            if is_accumulating:
                continue
            if not is_stepped or steps != self._steps:
                losses += group
            group = []
            finished = index
            self._steps = steps
        self._seen = self._seen[finished:]
        return losses

    def _check(self, runner: BaseRunner, losses: list[tuple[int, torch.Tensor]]) -> None:
        if not losses:
            return
        finite = torch.stack([loss for _, loss in losses]).isfinite()
        if bool(finite.all()):
            return
        iteration, loss = losses[finite.tolist().index(False)]
        raise InvalidLoss(
            f"the loss of iteration {iteration} is not finite",
            component=self.name,
            value=loss.item(),
            site="after_train_iter",
            suggestion=Suggestion(advice=_describe_good_checkpoint(runner)),
        )


def _one_number(loss: Any) -> torch.Tensor:
    """Return a loss as a tensor with one number; of several, the one furthest from zero."""
    if not isinstance(loss, torch.Tensor):
        return torch.tensor(loss, dtype=torch.float64)
    number: torch.Tensor = loss.detach().abs().max()
    return number


def _describe_good_checkpoint(runner: BaseRunner) -> str:
    checkpointer = runner.checkpointer
    if not checkpointer.is_open:
        return ""  # The run saves no checkpoints.
    try:
        checkpointer.wait()
    except HooklineError as error:
        return f"the last checkpoint could not be saved: {error}"
    entry = checkpointer.store.find_latest().entry
    if entry is None:
        return "no good checkpoint was saved before this iteration"
    path = checkpointer.store.directory / entry.name
    return f"the newest good checkpoint is {path} (iteration {entry.step})"
