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
        # Losses with their iterations: since the last check, and since the last optimizer step.
        self._losses: list[tuple[int, torch.Tensor]] = []
        self._group: list[tuple[int, torch.Tensor]] = []
        self._last: tuple[int, torch.Tensor] | None = None
        self._steps = 0

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
        self._last = (runner.iter + 1, number)
        self._group.append(self._last)
        if not runner.loop.accumulating:
            # The loss scaler may have skipped the step, and with it the effect of these losses.
            is_skipped = bool(runner.sites.optimize) and runner.optimizer_steps == self._steps
            if not is_skipped:
                self._losses += self._group
            self._group = []
            self._steps = runner.optimizer_steps
        if (runner.iter + 1) % self.interval == 0:
            self._check(runner)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._check(runner)

    def after_train(self, runner: BaseRunner) -> None:
        if self._last is not None:
            self._losses.append(self._last)
        self._check(runner)

    def _forget(self, runner: BaseRunner) -> None:
        self._losses = []
        self._group = []
        self._last = None
        self._steps = runner.optimizer_steps

    def _check(self, runner: BaseRunner) -> None:
        losses, self._losses = self._losses, []
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
