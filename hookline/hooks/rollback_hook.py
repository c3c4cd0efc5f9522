"""Going back to a good checkpoint when the loss goes wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import ConfigError, InvalidLoss
from hookline.optim.groups import param_groups

ENOUGH = 10  # losses that must be known before one can be called a spike


class Step(NamedTuple):
    """An iteration whose loss is looked at."""

    iter: int
    epoch: int
    batch: int
    loss: Any


@HOOKS.register()
@dataclass
class RollbackHook(BaseHook):
    """When the loss is not finite, or a spike, go back to the last good checkpoint and go on without the batches that did it.

    A spike is a loss above `spike` times the mean of the last `window` (None: only what is not finite counts). `skip_batches` are
    passed over, up to the one with the bad loss: the one before it may have spoilt the weights. The learning rate is
    multiplied with `lr_factor`. The run fails after `max_rollbacks`; `history` says what happened. Needs a CheckpointHook.
    """

    max_rollbacks: int = 3
    spike: float | None = None
    window: int = 100
    skip_batches: int = 2
    lr_factor: float = 1.0
    history: list[dict[str, Any]] = state([])
    skipped: list[list[int]] = state([])  # (epoch, batch)
    recent: list[float] = state([])
    lr_cut: float = state(1.0)  # all cuts together
    bases: list[float | None] = state([])  # the groups' initial rates, as cut

    priority = Priority.VERY_LOW  # after_*: first, before others act upon the bad loss

    def __post_init__(self) -> None:
        least = {"max_rollbacks": 1, "window": ENOUGH, "skip_batches": 1}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ValueError(f"RollbackHook: {name} must be at least {value}, got {getattr(self, name)}")
        if (self.spike is not None and self.spike <= 1) or not 0 < self.lr_factor <= 1:
            raise ValueError(f"RollbackHook: spike must be above 1 and lr_factor in (0, 1], got {self.spike} and {self.lr_factor}")
        self._waiting: tuple[Step, Any] | None = None

    def before_train(self, runner: BaseRunner) -> None:
        if runner.world.size > 1:
            raise ConfigError(f"{self.name}: going back works in a run of one process only; CheckInvalidLossHook stops one of several")
        if runner.saver is None:
            raise ConfigError(f"{self.name} has nothing to go back to: register a CheckpointHook")
        self._pass_over(runner)
        for group, base in zip(param_groups(runner.optimizer), self.bases, strict=False):
            if base is not None and math.isclose(group["initial_lr"] * self.lr_cut, base):
                group["initial_lr"] = base  # a schedule has put the config's rate there
        if not runner.resuming:
            runner.request_save("start")

    def after_train_iter(self, runner: BaseRunner) -> None:
        step = self._arrived(Step(runner.iter, runner.epoch, runner.batch_idx, runner.outputs["loss"].detach()))
        if step is None:
            return
        limit = math.inf
        if self.spike is not None and len(self.recent) >= ENOUGH:
            limit = self.spike * sum(self.recent) / len(self.recent)
        if math.isfinite(step.loss) and step.loss <= limit:
            if self.spike is not None:
                self.recent = [*self.recent[1 - self.window :], step.loss]
            return
        what = f"a spike, above {limit:.6g}" if math.isfinite(step.loss) else "not finite"
        runner.seam.request_go_back(partial(self._go_back, step, what))

    def _arrived(self, step: Step) -> Step | None:
        """The step whose loss is known now: this one, or on a GPU, which must not be waited for, the one before."""
        if step.loss.device.type == "cpu":
            return step._replace(loss=float(step.loss))
        before, event = self._waiting, torch.cuda.Event()  # type: ignore[no-untyped-call]
        copy = step.loss.to("cpu", non_blocking=True)
        event.record()
        self._waiting = step._replace(loss=copy), event
        if before is None:
            return None
        before[1].synchronize()
        return before[0]._replace(loss=float(before[0].loss))

    def _go_back(self, step: Step, what: str) -> None:
        runner, trouble = self.runner, f"the loss of iteration {step.iter + 1} is {step.loss:.6g}, {what}"
        if len(self.history) >= self.max_rollbacks:
            raise InvalidLoss(f"{trouble}, after {len(self.history)} rollbacks already")
        runner.wait_for_saves()
        entry = runner.store.latest()
        if entry is None or entry.step > step.iter:
            raise InvalidLoss(f"{trouble}, and there is no checkpoint of this run to go back to in {runner.store.directory}")
        checkpoint = runner.store.load(entry)
        cut_then = checkpoint["hooks"].get(self.name, {}).get("lr_cut", 1.0)
        first = checkpoint["meta"]["inner_iter"] if checkpoint["meta"]["epoch"] == step.epoch else 0
        bad = [[step.epoch, batch] for batch in range(max(first, step.batch + 1 - self.skip_batches), step.batch + 1)]
        self.skipped = [*self.skipped, *(place for place in bad if place not in self.skipped)]
        self.lr_cut *= self.lr_factor
        about = {"iter": step.iter + 1, "epoch": step.epoch + 1, "loss": step.loss, "why": what, "skipped": bad, "lr_cut": self.lr_cut}
        self.history = [*self.history, {**about, "checkpoint": entry.name, "back_to": entry.step}]
        checkpoint["hooks"][self.name] = self.state_dict()  # going back must not make us forget that we did
        runner.continue_from(checkpoint)
        self._cut_rates(runner, self.lr_cut / cut_then)
        checkpoint["hooks"][self.name] = self.state_dict()
        self._pass_over(runner)
        self._waiting = None
        self._tell(runner, f"{trouble}: back to {entry.name} (iteration {entry.step}), without batches {[batch + 1 for _, batch in bad]}")

    def _tell(self, runner: BaseRunner, text: str) -> None:
        if self.lr_factor < 1:
            text += f", at {self.lr_cut:.6g} of the learning rate"
        runner.logger.warning("rollback %d of %d: %s", len(self.history), self.max_rollbacks, text)
        runner.events.put_text("rollback", text)
        runner.events.put_scalar("rollbacks", len(self.history), smoothing_hint=False)

    def _pass_over(self, runner: BaseRunner) -> None:
        runner.passed_over = {(epoch, batch) for epoch, batch in self.skipped}
        if runner.iter_limit is None and runner.max_epochs is not None and runner.epoch_length is not None:
            here = runner.epoch, runner.inner_iter
            left = (runner.max_epochs - runner.epoch) * runner.epoch_length - runner.inner_iter
            runner.max_iters = runner.iter + left - sum(place >= here for place in runner.passed_over)

    def _cut_rates(self, runner: BaseRunner, factor: float) -> None:
        groups = param_groups(runner.optimizer)
        for optimizer_group in groups:
            optimizer_group.update({key: optimizer_group[key] * factor for key in ("lr", "initial_lr") if key in optimizer_group})
        self.bases = [group.get("initial_lr") for group in groups]
        for scheduler in runner.scheduler if isinstance(runner.scheduler, (list, tuple)) else [runner.scheduler]:
            if hasattr(scheduler, "base_lrs"):
                scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]
