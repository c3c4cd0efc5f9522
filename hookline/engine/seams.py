"""Seams: the gaps between iterations and epochs, where what hooks asked for is done: validate, then save, then stop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hookline.engine.capture import capture
from hookline.engine.evaluation import evaluate
from hookline.engine.hook import BaseHook
from hookline.engine.run import Run

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

Write = Callable[[dict[str, Any]], None]


class Seam:
    """The requests that wait for the next seam. `pending` is all that the loop looks at while there are none."""

    def __init__(self) -> None:
        self.pending = False
        self._validate = False
        self._writes: list[Write] = []
        self._stop: str | None = None
        self._calls: list[Callable[[], object]] = []
        self._back: Callable[[], object] | None = None
        self._looking = False  # a validation is under way from which nothing follows

    def hears(self) -> bool:
        """Whether a request that is being made counts; a signal's always does."""
        return not self._looking or isinstance(asker(), Run)

    def call_next(self, function: Callable[[], object]) -> None:
        """Have a function called at the next seam, before all else; a background thread reports its failure so."""
        self._calls.append(function)
        self.pending = True

    def request_validate(self) -> None:
        self._validate = self.pending = True

    def request_save(self, write: Write) -> None:
        if write not in self._writes:
            self._writes.append(write)
        self.pending = True

    def request_save_as(self, name: str | None, local: bool) -> bool:
        """Note that a checkpoint of a name is wanted, where others have to agree first; False if it can be asked for at once."""
        return False

    def request_stop(self, reason: str) -> None:
        self._stop = self._stop or reason  # the first reason is the cause
        self.pending = True

    def request_go_back(self, function: Callable[[], object]) -> None:
        """Have a function put the run back to an earlier state as soon as this iteration is over."""
        self._back = self._back or function
        self.pending = True

    def go_back(self) -> bool:
        """Put the run back if that was asked for; what else was asked for in the iteration that went wrong is forgotten."""
        if self._back is None:
            return False
        function, self._back = self._back, None
        self._validate, self._writes = False, []
        self.pending = bool(self._stop or self._calls)
        function()
        return True

    def settle_before_training(self, runner: BaseRunner) -> None:
        """Do what was asked for before the first iteration.

        A resumed run may be validated to be looked at, but nothing follows from it: what did, if anything, followed when the
        run first came here. Its saves wait until its state is whole again.
        """
        if not runner.resuming:
            self.settle(runner)
            return
        runner.stop_reason, self._stop = self._stop, None
        best, self._looking = dict(runner.best), True
        try:
            self.validate(runner)
        finally:
            runner.best, self._looking = best, False
        self.pending = bool(self._writes or self._stop or self._calls)

    def validate(self, runner: BaseRunner) -> None:
        """Validate if that was asked for; what the validation's hooks ask for waits like the rest."""
        if self._validate:
            self._validate = False
            if runner.val_loader is not None:
                with runner.costs.seam("validate"):
                    evaluate(runner, "val")

    def settle(self, runner: BaseRunner) -> None:
        """Do all that was asked for, in the fixed order."""
        self.pending = False  # first: what is asked for from now on, by a signal too, is for the next seam
        while self._calls:
            self._calls.pop()()
        self.validate(runner)
        if self._save_wanted():
            if runner.accumulating:
                self.pending = True
                return  # half a gradient cannot be saved: wait for the optimizer step, and stop after it
            writes, self._writes = self._writes, []
            with runner.costs.seam("save"):
                save(runner, writes)
        if self._stop is not None:
            runner.stop_reason, self._stop = self._stop, None

    def epoch_ends(self) -> None:
        """The next seam is that after an epoch."""

    def _save_wanted(self) -> bool:
        return bool(self._writes)


def asker() -> Run | BaseHook | None:
    """Who makes a request: a hook, or a signal, which may have come in the middle of one. Read from the stack, for requests are rare."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, (Run, BaseHook)):
            return owner
        frame = frame.f_back
    return None


def save(runner: BaseRunner, writes: list[Write]) -> None:
    """Take one snapshot and hand it to everyone who wants to write it."""
    runner.checkpoint = capture(runner, runner.world)
    try:
        for call in runner.sites.before_save_checkpoint:
            call(runner)
        for write in writes:
            write(runner.checkpoint)
        for call in runner.sites.after_save_checkpoint:
            call(runner)
    finally:
        runner.checkpoint = None
