"""Roll back to a good checkpoint when the loss is NaN, infinite, or spikes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import torch

from hookline.dist.gather import batch_share
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import ConfigError, InvalidLoss, parameter_error, require_at_least
from hookline.optim.groups import param_groups

MIN_LOSSES = 10  # that must be known before one can be called a spike


class Step(NamedTuple):
    """An iteration whose losses are checked."""

    iter: int
    epoch: int
    batch: int
    losses: Any  # of all ranks; a tensor, or a list once they are known


class BadLoss(NamedTuple):
    """A loss that is not finite or a spike."""

    rank: int
    loss: float
    why: str


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
    priority = Priority.VERY_LOW  # first in `after_*`, before others use the bad loss
    ranks = "collective"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "max_rollbacks", "skip_batches")
        require_at_least(self, MIN_LOSSES, "window")
        if self.spike is not None and self.spike <= 1:
            raise parameter_error(self, "spike", "must be above 1")
        if not 0 < self.lr_factor <= 1:
            raise parameter_error(self, "lr_factor", "must be in (0, 1]")
        self._pending: tuple[Step, Any] | None = None

    def before_train(self, runner: BaseRunner) -> None:
        if not runner.checkpointer.is_open:
            message = "has nothing to roll back to: register a CheckpointHook"
            raise ConfigError(message, component=self.name)
        self._skip_batches(runner)
        for group, base in zip(param_groups(runner.optimizer), self.bases, strict=False):
            if base is not None and math.isclose(group["initial_lr"] * self.lr_cut, base):
                group["initial_lr"] = base  # a schedule has set the config's rate
        if not runner.loop.resuming:
            runner.request_save("start", collective=True)

    def after_train_iter(self, runner: BaseRunner) -> None:
        loss = runner.outputs["loss"].detach()
        share = batch_share(runner)
        if share > 1:
            loss = loss / share  # UnevenBatchHook has multiplied it
        losses = runner.world.gather_numbers(loss)
        step = self._known_step(Step(runner.iter, runner.epoch, runner.batch_idx, losses))
        if step is None:
            return
        bad = self._find_bad_loss(step.losses)
        if bad is not None:  # the same on all ranks
            runner.loop.requests.roll_back(partial(self._roll_back, step, bad))
        elif self.spike is not None:
            self.recent = [*self.recent[1 - self.window :], fmean(step.losses)]

    def _known_step(self, step: Step) -> Step | None:
        """Return the step whose losses are known: on a GPU the one before, to avoid a wait."""
        if step.losses.device.type == "cpu":
            return step._replace(losses=step.losses.tolist())
        before = self._pending
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copy = step.losses.to("cpu", non_blocking=True)
        event.record()
        self._pending = step._replace(losses=copy), event
        if before is None:
            return None
        before[1].synchronize()
        return before[0]._replace(losses=before[0].losses.tolist())

    def _find_bad_loss(self, losses: list[float]) -> BadLoss | None:
        for rank, loss in enumerate(losses):
            if not math.isfinite(loss):
                return BadLoss(rank, loss, "not finite")
        if self.spike is None or len(self.recent) < MIN_LOSSES:
            return None
        limit = self.spike * fmean(self.recent)
        worst = max(losses)
        if worst <= limit:
            return None
        return BadLoss(losses.index(worst), worst, f"a spike, above {limit:.6g}")

    def _roll_back(self, step: Step, bad: BadLoss) -> None:
        runner = self.runner
        of_rank = f" on rank {bad.rank}" if runner.world.size > 1 else ""
        trouble = f"the loss of iteration {step.iter + 1}{of_rank} is {bad.loss:.6g}, {bad.why}"
        if len(self.history) >= self.max_rollbacks:
            message = f"{trouble}, after {len(self.history)} rollbacks"
            raise InvalidLoss(message, component=self.name, parameter="max_rollbacks")
        runner.checkpointer.wait()
        entry = runner.checkpointer.find_newest()
        if entry is None or entry.step > step.iter:
            directory = runner.checkpointer.store.directory
            raise InvalidLoss(
                f"{trouble}, and there is no checkpoint of this run in {directory} to roll back to",
                component=self.name,
            )
        checkpoint = runner.checkpointer.load_entry(entry)
        skipped = self._bad_batches(step, checkpoint["meta"])
        old_cut = checkpoint["hooks"].get(self.name, {}).get("lr_cut", 1.0)
        self.skipped = [*self.skipped, *(each for each in skipped if each not in self.skipped)]
        self.lr_cut *= self.lr_factor
        record = {
            "iter": step.iter + 1,
            "epoch": step.epoch + 1,
            "rank": bad.rank,
            "loss": bad.loss,
            "why": bad.why,
            "skipped": skipped,
            "lr_cut": self.lr_cut,
            "checkpoint": entry.name,
            "back_to": entry.step,
        }
        self.history = [*self.history, record]
        checkpoint["hooks"][self.name] = self.state_dict()  # remember the rollback itself
        runner.checkpointer.resume_from(checkpoint)
        self._cut_rates(runner, self.lr_cut / old_cut)
        checkpoint["hooks"][self.name] = self.state_dict()
        self._skip_batches(runner)
        self._pending = None
        numbers = [batch + 1 for _, batch in skipped]
        back = f"back to {entry.name} (iteration {entry.step}), skipping batches {numbers}"
        self._report(runner, f"{trouble}: {back}")

    def _bad_batches(self, step: Step, meta: dict[str, Any]) -> list[list[int]]:
        first = meta["inner_iter"] if meta["epoch"] == step.epoch else 0
        first = max(first, step.batch + 1 - self.skip_batches)
        return [[step.epoch, batch] for batch in range(first, step.batch + 1)]

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

    def _cut_rates(self, runner: BaseRunner, factor: float) -> None:
        groups = param_groups(runner.optimizer)
        for group in groups:
            for key in ("lr", "initial_lr"):
                if key in group:
                    group[key] *= factor
        self.bases = [group.get("initial_lr") for group in groups]
        schedulers = runner.scheduler
        if not isinstance(schedulers, (list, tuple)):
            schedulers = [schedulers]
        for scheduler in schedulers:
            if hasattr(scheduler, "base_lrs"):
                scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]
