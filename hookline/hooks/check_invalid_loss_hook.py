"""Abort training when the loss is NaN or infinite."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import HooklineError, InvalidLoss, Suggestion, require_at_least
from hookline.events.series import to_numbers

Number = float | torch.Tensor  # on a device, a tensor that is read at the next check


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
        self._seen: list[tuple[int, Number, bool, int]] = []
        self._last: tuple[int, Number] | None = None
        self._steps = 0  # at the end of the last group of iterations with a step

    def before_train(self, runner: BaseRunner) -> None:
        self._forget(runner)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        self._forget(runner)  # A rollback discards the iterations since the checkpoint.

    def after_train_iter(self, runner: BaseRunner) -> None:
        loss = runner.outputs.get("loss")
        if loss is None:
            return
        iteration = runner.iter + 1
        if type(loss) is torch.Tensor and loss.is_cpu and loss.numel() == 1:
            number: Number = loss.item()
        else:
            number = _one_number(loss)
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

    def _take_effective(self, runner: BaseRunner) -> list[tuple[int, Number]]:
        """Return the losses since the last check, without those whose step was skipped.

        The loss scaler may have skipped a step, and with it the effect of these losses. Losses of
        an unfinished group of iterations stay for the next check.
        """
        is_stepped = bool(runner.sites.optimize)
        losses: list[tuple[int, Number]] = []
        group: list[tuple[int, Number]] = []
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

    def _check(self, runner: BaseRunner, losses: list[tuple[int, Number]]) -> None:
        if not losses:
            return
        numbers = to_numbers([loss for _, loss in losses])
        if all(map(math.isfinite, numbers)):
            return
        index = [math.isfinite(number) for number in numbers].index(False)
        raise InvalidLoss(
            f"the loss of iteration {losses[index][0]} is not finite",
            component=self.name,
            value=numbers[index],
            site="after_train_iter",
            suggestion=Suggestion(advice=_describe_good_checkpoint(runner)),
        )


def _one_number(loss: Any) -> Number:
    """Return a loss as a number, or as a tensor to read later if that means to wait for a device.

    Of several numbers, it is the one furthest from zero.
    """
    if not isinstance(loss, torch.Tensor):
        return float(loss)
    if loss.numel() != 1:
        loss = loss.detach().abs().max()
    return float(loss.item()) if loss.is_cpu else loss.detach()


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
