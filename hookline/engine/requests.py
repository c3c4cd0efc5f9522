"""Requests of hooks, handled at seams in a fixed order: validate, then save, then stop.

A seam is the gap between two iterations or epochs. Hooks only request; nothing happens before all
hooks of a site have run, so their order cannot corrupt a checkpoint.
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

NEVER = 2**63
AT_ONCE = 0


class Requests:
    """Requests that wait for the next seam.

    The loop compares the iteration with `due_at`, and nothing else, while there are none. In a job
    of several ranks a *collective* request is made by all ranks in the same iteration and handled
    right after it. Every other request (one rank's signal, clock, loss or background thread) waits
    until the ranks exchange their requests: about once a second, and at the end of each epoch.
    """

    def __init__(self, world: World, agreement: Agreement | None = None) -> None:
        if world.size > 1:
            agreement = agreement or Agreement(world)
        self.due_at = NEVER if agreement is None else AT_ONCE
        self.accepting = True  # False during a validation that must have no consequences
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
        """Request a checkpoint; `queue` takes its name, None captures the state without a file."""
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
        """Request that `restore` puts the run back after this iteration; all ranks must do it."""
        self._rollback = self._rollback or restore
        self.due_at = AT_ONCE

    def call_at_next_seam(self, function: Callable[[], object]) -> None:
        """Call a function at the next seam; a background thread reports its failure this way."""
        self._calls.append(function)
        if self._agreement is None:
            self.due_at = AT_ONCE

    def handle_rollback(self) -> bool:
        """Roll back if requested, and drop the other requests of the bad iteration."""
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
        """Make the next seam that of an epoch, where all ranks exchange their requests."""
        if self._agreement is not None:
            self.due_at = AT_ONCE

    def handle_validation(self, runner: BaseRunner) -> None:
        """Validate if requested; requests made by its hooks wait like all others."""
        if not self._validate:
            return
        self._validate = False
        if runner.val_loader is not None:
            with runner.sites.costs.time_seam("validate"):
                runner.evaluation.run(runner, "val")

    def settle(self, runner: BaseRunner) -> None:
        """Handle all requests: validate, then save, then stop."""
        self.due_at = NEVER  # first: a request made from now on is for the next seam
        while self._calls:
            self._calls.pop()()
        self._exchange(runner)
        if self._validate:
            self.handle_validation(runner)
            self._exchange(runner)
        if self._save and runner.loop.accumulating:
            self.due_at = AT_ONCE  # half a gradient cannot be saved: wait for the optimizer step
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

        Its validation is for display only: its save and stop requests were handled before the
        checkpoint was written. Saves wait until the state is complete again.
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
        """Make requests of one rank requests of all ranks."""
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
