"""Roll back to a good checkpoint when the loss is NaN, infinite, or spikes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from hookline.checkpoint.manifest import Entry
from hookline.dist.gather import batch_share
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import ConfigError, InvalidLoss, parameter_error, require_at_least
from hookline.optim.bad_losses import (
    MIN_LOSSES,
    BadLoss,
    IterationLosses,
    LossReader,
    find_bad_loss,
)
from hookline.optim.groups import param_groups, scale_learning_rates


@HOOKS.register()
@dataclass
class RollbackHook(BaseHook):
    """Roll back to the last good checkpoint when the loss is not finite or spikes.

    Weights, optimizer and hooks return to the checkpoint, and so does the data in a loop that
    Hookline owns. The run continues without the batches around the bad loss. The hook needs a
    CheckpointHook.

    In a run of several ranks, a bad loss of any rank rolls all of them back. They exchange their
    losses in every iteration.

    Args:
        max_rollbacks: Number of rollbacks after which the next bad loss fails the run.
        spike: Multiple of the mean loss above which a loss is a spike. None reacts only to losses
            that are not finite.
        window: Number of recent losses in that mean.
        skip_batches: Number of batches to skip, up to the one with the bad loss. The batch before
            it may have spoiled the weights.
        lr_factor: Factor for the learning rate after each rollback.

    Attributes:
        history: One entry for each rollback.
        skipped: Skipped batches, as epoch and batch number.
        recent: Losses of the window, each the mean over all ranks.
        lr_cut: Product of all factors of the learning rate so far.
        bases: Initial learning rates of the parameter groups, times that product.

    Example:
        ```yaml
        hooks:
          - {type: RollbackHook, spike: 5.0, window: 100, lr_factor: 0.5}
        ```
    """

    max_rollbacks: int = 3
    spike: float | None = None
    window: int = 100
    skip_batches: int = 2
    lr_factor: float = 1.0
    history: list[dict[str, Any]] = state([])
    skipped: list[list[int]] = state([])  # (epoch, batch)
    recent: list[float] = state([])
    lr_cut: float = state(1.0)  # the product of all cuts
    bases: list[float | None] = state([])  # the groups' initial rates, as cut

    replaces = ("CheckInvalidLossHook",)
    priority = Priority.VERY_LOW  # First in `after_*`, before others use the bad loss.
    ranks = "collective"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "max_rollbacks", "skip_batches")
        require_at_least(self, MIN_LOSSES, "window")
        if self.spike is not None and self.spike <= 1:
            raise parameter_error(self, "spike", "must be above 1")
        if not 0 < self.lr_factor <= 1:
            raise parameter_error(self, "lr_factor", "must be in (0, 1]")
        self._reader = LossReader()

    def before_train(self, runner: BaseRunner) -> None:
        if not runner.checkpointer.is_open:
            message = "has nothing to roll back to: register a CheckpointHook"
            raise ConfigError(message, component=self.name)
        self._skip_batches(runner)
        for group, base in zip(param_groups(runner.optimizer), self.bases, strict=False):
            if base is not None and math.isclose(group["initial_lr"] * self.lr_cut, base):
                group["initial_lr"] = base  # A schedule has restored the configured rate.
        if not runner.loop.resuming:
            runner.request_save("start", collective=True)

    def after_train_iter(self, runner: BaseRunner) -> None:
        loss = runner.outputs["loss"].detach()
        share = batch_share(runner)
        if share > 1:
            loss = loss / share  # UnevenBatchHook has multiplied it.
        losses = runner.world.gather_numbers(loss)
        position = (runner.iter, runner.epoch, runner.batch_idx)
        known = self._reader.read(IterationLosses(*position, losses))
        if known is None:
            return
        bad = find_bad_loss(known.losses, self.recent, self.spike)
        if bad is not None:  # the same on all ranks
            runner.loop.requests.roll_back(partial(self._roll_back, known, bad))
        elif self.spike is not None:
            self.recent = [*self.recent[1 - self.window :], fmean(known.losses)]

    def _roll_back(self, at: IterationLosses, bad: BadLoss) -> None:
        runner = self.runner
        of_rank = f" on rank {bad.rank}" if runner.world.size > 1 else ""
        trouble = f"the loss of iteration {at.iter + 1}{of_rank} is {bad.loss:.6g}, {bad.why}"
        entry = self._find_checkpoint(at, trouble)
        checkpoint = runner.checkpointer.load_entry(entry)
        skipped = self._bad_batches(at, checkpoint["meta"])
        old_cut = checkpoint["hooks"].get(self.name, {}).get("lr_cut", 1.0)
        self._remember(at, bad, entry, skipped)
        # The checkpoint is older than this rollback: resume with the hook's current state.
        checkpoint["hooks"][self.name] = self.state_dict()
        runner.checkpointer.resume_from(checkpoint)
        self.bases = scale_learning_rates(runner.optimizer, runner.scheduler, self.lr_cut / old_cut)
        checkpoint["hooks"][self.name] = self.state_dict()
        self._skip_batches(runner)
        self._reader.discard()
        numbers = [batch + 1 for _, batch in skipped]
        back = f"back to {entry.name} (iteration {entry.step}), skipping batches {numbers}"
        self._report(runner, f"{trouble}: {back}")

    def _remember(
        self, at: IterationLosses, bad: BadLoss, entry: Entry, skipped: list[list[int]]
    ) -> None:
        """Add a rollback to the history, its batches to those to skip, and lower the rate."""
        self.skipped = [*self.skipped, *(each for each in skipped if each not in self.skipped)]
        self.lr_cut *= self.lr_factor
        record = {
            "iter": at.iter + 1,
            "epoch": at.epoch + 1,
            "rank": bad.rank,
            "loss": bad.loss,
            "why": bad.why,
            "skipped": skipped,
            "lr_cut": self.lr_cut,
            "checkpoint": entry.name,
            "back_to": entry.step,
        }
        self.history = [*self.history, record]

    def _find_checkpoint(self, at: IterationLosses, trouble: str) -> Entry:
        """Return the newest checkpoint from before a bad loss; raise if the run must fail."""
        if len(self.history) >= self.max_rollbacks:
            message = f"{trouble}, after {len(self.history)} rollbacks"
            raise InvalidLoss(message, component=self.name, parameter="max_rollbacks")
        checkpointer = self.runner.checkpointer
        checkpointer.wait()
        entry = checkpointer.find_newest()
        if entry is None or entry.step > at.iter:
            directory = checkpointer.store.directory
            message = (
                f"{trouble}, and there is no checkpoint of this run in {directory} to roll back to"
            )
            raise InvalidLoss(message, component=self.name)
        return entry

    def _bad_batches(self, at: IterationLosses, meta: dict[str, Any]) -> list[list[int]]:
        """Return the batches to skip, none of them from before the checkpoint."""
        first = meta["inner_iter"] if meta["epoch"] == at.epoch else 0
        first = max(first, at.batch + 1 - self.skip_batches)
        return [[at.epoch, batch] for batch in range(first, at.batch + 1)]

    def _report(self, runner: BaseRunner, text: str) -> None:
        if self.lr_factor < 1:
            text += f", at {self.lr_cut:.6g} of the learning rate"
        runner.logger.warning("rollback %d of %d: %s", len(self.history), self.max_rollbacks, text)
        runner.events.put_text("rollback", text)
        runner.events.put_scalar("rollbacks", len(self.history), smoothing_hint=False)

    def _skip_batches(self, runner: BaseRunner) -> None:
        skipped = {(epoch, batch) for epoch, batch in self.skipped}
        runner.loop.skipped_batches = skipped
        in_epochs = runner.loop.iter_limit is None and runner.max_epochs is not None
        if in_epochs and runner.epoch_length is not None:
            here = (runner.epoch, runner.inner_iter)
            left = (runner.max_epochs - runner.epoch) * runner.epoch_length - runner.inner_iter  # type: ignore[operator]
            runner.max_iters = runner.iter + left - sum(each >= here for each in skipped)
