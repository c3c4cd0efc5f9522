"""Requests of hooks, handled at seams in a fixed order: validate, then save, then stop.

A seam is the gap between two iterations or epochs. A hook only requests; the loop acts after all
hooks of the site have run, so the order of hooks cannot corrupt a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

from hookline.dist.agreement import Agreement
from hookline.stop_reason import StopReason

if TYPE_CHECKING:
    from hookline.dist import World
    from hookline.engine.runner import BaseRunner

NEVER = 2**63  # an iteration that no run reaches
AT_ONCE = 0


class Requests:
    """Requests that wait for the next seam.

    The loop settles requests when `runner.iter >= due_at`; while there are none, this comparison
    is the only cost. With several ranks, a *collective* request is made by all ranks in the same
    iteration and handled right after it. Any other request (of one rank's signal, clock, loss or
    thread) waits for `Agreement`: ranks exchange requests about once a second and after epochs.
    """

    def __init__(self, world: World, agreement: Agreement | None = None) -> None:
        if world.size > 1:
            agreement = agreement or Agreement(world)
        self.due_at = NEVER if agreement is None else AT_ONCE
        self.accepting = True  # False in `settle_on_resume`, where new requests are ignored
        self._agreement = agreement
        self._validate = False
        self._save = False
        self._stop: StopReason | None = None
        self._rollback: Callable[[], object] | None = None
        self._calls: list[Callable[[], object]] = []

    def validate(self, collective: bool = False) -> None:
        """Request a validation."""
        if self._agreement is not None and not collective:
            self._agreement.request_validate()
            return
        self._validate = True
        self.due_at = AT_ONCE

    def save(self, name: str | None, queue: Callable[[str], object], collective: bool) -> None:
        """Request a checkpoint; without a name the state is captured but no file is queued."""
        if self._agreement is not None and not collective:
            self._agreement.request_save(name)
            return
        if name is not None:
            queue(name)
        self._save = True
        self.due_at = AT_ONCE

    def stop(self, reason: StopReason, collective: bool = False) -> None:
        """Request the end of the run; the first reason is kept."""
        if self._agreement is not None and not collective:
            self._agreement.request_stop(asdict(reason))
            return
        self._stop = self._stop or reason
        self.due_at = AT_ONCE

    def roll_back(self, restore: Callable[[], object]) -> None:
        """Request a call of `restore` after this iteration, on all ranks."""
        self._rollback = self._rollback or restore
        self.due_at = AT_ONCE

    def call_at_next_seam(self, function: Callable[[], object]) -> None:
        """Call a function at the next seam, such as one that raises a background thread's error."""
        self._calls.append(function)
        if self._agreement is None:
            self.due_at = AT_ONCE

    def handle_rollback(self) -> bool:
        """Roll back if requested; drop validations and saves of the bad iteration."""
        if self._rollback is None:
            return False
        restore, self._rollback = self._rollback, None
        self._validate = False
        self._save = False
        if self._agreement is not None:
            self._agreement.discard_work()
        is_waiting = self._stop or self._calls or self._agreement is not None
        self.due_at = AT_ONCE if is_waiting else NEVER
        restore()
        return True

    def mark_epoch_end(self) -> None:
        """Make ranks exchange their requests at the next seam, which ends an epoch."""
        if self._agreement is not None:
            self.due_at = AT_ONCE

    def handle_validation(self, runner: BaseRunner) -> None:
        """Validate if requested. Requests that hooks make meanwhile wait like all others."""
        if not self._validate:
            return
        self._validate = False
        if runner.val_loader is not None:
            with runner.sites.costs.time_seam("validate"):
                runner.evaluation.run(runner, "val")

    def settle(self, runner: BaseRunner) -> None:
        """Handle all requests: validate, then save, then stop."""
        self.due_at = NEVER  # First: requests made from now on are for the next seam.
        while self._calls:
            self._calls.pop()()
        self._exchange(runner)
        if self._validate:
            self.handle_validation(runner)
            self._exchange(runner)
        if self._save and runner.loop.accumulating:
            self.due_at = AT_ONCE  # Checkpoints hold no gradients: wait for the optimizer step.
        else:
            if self._save:
                self._save = False
                with runner.sites.costs.time_seam("save"):
                    runner.checkpointer.save()
            if self._stop is not None:
                runner.stop_reason, self._stop = self._stop, None
        if self._agreement is not None:
            self.due_at = min(self.due_at, self._agreement.schedule(runner.iter))

    def settle_on_resume(self, runner: BaseRunner) -> None:
        """Handle requests made before the first iteration of a resumed run.

        The validation is for display only: the run that wrote the checkpoint has handled its save
        and stop requests. Saves wait for the next seam, when the state is complete again.
        """
        self._exchange(runner)
        runner.stop_reason, self._stop = self._stop, None
        best = runner.best.state_dict()
        self.accepting = False
        try:
            self.handle_validation(runner)
        finally:
            self.accepting = True
            runner.best.load_state_dict(best)
        is_waiting = self._save or self._calls or self._stop is not None
        self.due_at = AT_ONCE if is_waiting else NEVER
        if self._agreement is not None:
            self.due_at = min(self.due_at, runner.iter + 1)

    def _exchange(self, runner: BaseRunner) -> None:
        """Take over the requests of all ranks."""
        if self._agreement is None:
            return
        agreed = self._agreement.exchange([runner.epoch, runner.inner_iter, runner.iter])
        self._validate = self._validate or agreed.validate
        for name in agreed.save:
            self._save = True
            if name is not None:
                runner.checkpointer.queue(name)
        if agreed.stop is not None:
            self._stop = self._stop or StopReason(**agreed.stop)
