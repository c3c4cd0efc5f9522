"""The training loop: everything around an iteration and an epoch, in one place.

`iterations` is the loop of a runner and of `for batch in drive(…)`. A loop that someone else owns
calls `begin_epoch`, `begin_iteration`, `end_iteration` and `end_epoch` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hookline.batches import move_each
from hookline.counters import complete_length, describe_position
from hookline.data.position import DataPosition
from hookline.engine.requests import Requests
from hookline.optim.saved_parts import restore_again
from hookline.preflight import empty_loader_error
from hookline.stop_reason import StopReason

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

END = object()
IN_ITERATION = frozenset({"data", "before_train_iter", "forward", "optimize", "after_train_iter"})


class After(Enum):
    """What follows an iteration."""

    NEXT_ITERATION = "the next iteration"
    END_OF_EPOCH = "the end of the epoch"
    LEAVE_EPOCH = "neither: the run stops here, or was rolled back"


class Loop:
    """Counts iterations and epochs, calls the sites around them, and settles requests at seams."""

    def __init__(self, runner: BaseRunner, iter_limit: int | None = None) -> None:
        self.iter_limit = iter_limit  # the length in iterations; None if it is given in epochs
        self.is_running = False  # whether `train`, `validate` or `test` is in progress
        self.phase = ""  # the current activity, for messages about errors and hangs
        self.accumulating = False  # whether gradients of several iterations are being added up
        self.requests = Requests(runner.world)
        self.data = DataPosition()
        self.data_time = 0.0  # seconds that the loop waited for the current batch
        self.skipped_batches: set[tuple[int, int]] = set()  # not trained on: (epoch, index)
        self.owns_data = True  # False if someone else reads it: a rollback cannot go back in it
        self._runner = runner
        self._awaited_since = 0.0
        self._batches: Iterator[Any] = iter(())
        self._resumed_from: dict[str, Any] | None = None

    @property
    def resuming(self) -> bool:
        """Whether a checkpoint was just restored and no iteration has followed yet."""
        return self._resumed_from is not None

    def iterations(self) -> Iterator[Any]:
        """Yield each batch of the run; the caller's `for` body is the iteration."""
        runner = self._runner
        try:
            while not self.is_finished():
                self.begin_epoch(self._open_data)
                after = After.END_OF_EPOCH
                while (batch := self._next_batch()) is not END:
                    self.begin_iteration(batch)
                    yield runner.batch
                    after = self.end_iteration()
                    if after is not After.NEXT_ITERATION:
                        break
                if after is not After.LEAVE_EPOCH:
                    self._finish_data()
                    self.end_epoch()
        finally:
            self._batches = iter(())  # worker processes end with the iterator

    def begin(self) -> None:
        """Settle the requests of `before_train` hooks. Call it before the first epoch."""
        runner = self._runner
        runner.sites.costs.begin_training(runner.iter)
        runner.events.outbox.open()
        if self.resuming and runner.iter >= self.requests.due_at:
            self.requests.settle_on_resume(runner)
        else:
            self.settle_if_due()

    def end(self) -> None:
        """Settle the requests that are left. Call it after the last epoch."""
        self.reapply_state()  # of a run that was already finished when it was resumed
        self.settle_if_due()

    def begin_epoch(self, open_data: Callable[[], object] | None = None) -> None:
        """Call the sites before an epoch, or before the rest of one after a resume."""
        runner = self._runner
        is_inside = runner.inner_iter > 0
        if not is_inside:
            self.reapply_state()
        self.phase = "before_epoch"
        self.call_site("before_epoch")
        self.call_site("before_train_epoch")
        if open_data is not None:
            open_data()
        if is_inside:  # last: beginning to read the data may draw random numbers
            self.reapply_state()
        self.phase = ""
        if not self.owns_data:
            self.await_batch()

    def call_site(self, site: str) -> None:
        """Call the hooks of a site that lies around epochs."""
        for call in self._runner.sites.calls(site):
            call(self._runner)

    def await_batch(self) -> None:
        """Begin the time in which the loop waits for a batch."""
        runner = self._runner
        if runner.iter >= runner.sites.costs.due:
            runner.sites.costs.begin_sample(runner)
        self.phase = "data"
        self._awaited_since = perf_counter()

    def begin_iteration(self, batch: Any) -> None:
        """Take a batch and call `before_train_iter`."""
        runner = self._runner
        self.data_time = perf_counter() - self._awaited_since
        runner.batch_idx = runner.inner_iter
        runner.batch = batch
        self.phase = "before_train_iter"
        for call in runner.sites.before_train_iter:
            call(runner)
        self.phase = "forward"

    def end_iteration(self, is_last: bool = False) -> After:
        """Call `after_train_iter`, count the iteration, settle requests; `is_last` ends the epoch."""
        runner = self._runner
        self.phase = "after_train_iter"
        for call in runner.sites.after_train_iter:
            call(runner)
        runner.iter += 1
        runner.inner_iter += 1
        self.phase = ""
        is_last = is_last or (self.owns_data and runner.iter == self.iter_limit)
        after = After.END_OF_EPOCH if is_last else After.NEXT_ITERATION
        if runner.iter >= self.requests.due_at:
            after = self._handle_requests(is_last)
        if not self.owns_data and after is After.NEXT_ITERATION:
            self.await_batch()
        return after

    def end_train_epoch(self) -> None:
        """Call `after_train_epoch`, before the validation."""
        runner = self._runner
        self.phase = ""
        runner.sites.costs.discard_sample()  # of an iteration that did not begin
        if self.owns_data and runner.inner_iter == 0:
            raise empty_loader_error(runner.train_loader, runner.epoch)
        self.call_site("after_train_epoch")
        self.requests.mark_epoch_end()

    def end_epoch(self) -> None:
        """Do everything from the epoch's last batch to the seam after it."""
        self.end_train_epoch()
        self.end_whole_epoch()
        self.settle_if_due()

    def end_whole_epoch(self) -> None:
        """Validate if requested, call `after_epoch`, and count the epoch."""
        runner = self._runner
        self.requests.handle_validation(runner)
        self.call_site("after_epoch")
        self.requests.handle_validation(runner)
        is_cut_short = runner.iter == self.iter_limit and runner.inner_iter != runner.epoch_length
        if not is_cut_short:  # else a longer run continues inside the epoch
            runner.epoch += 1
            runner.inner_iter = 0

    def is_finished(self) -> bool:
        """Return whether the run has reached its length or was asked to stop."""
        runner = self._runner
        if runner.stop_reason is not None:
            return True
        if self.iter_limit is not None:
            return runner.iter >= self.iter_limit
        return runner.max_epochs is not None and runner.epoch >= runner.max_epochs

    def natural_end(self) -> StopReason:
        """Return the reason of a run that reached its length."""
        return StopReason.at_length(self._runner.max_epochs, self.iter_limit)

    def update_length(self) -> None:
        """Compute the length in iterations from that in epochs, or the other way round."""
        complete_length(self._runner, self.iter_limit)

    def mark_resumed(self, checkpoint: dict[str, Any]) -> None:
        """Have `reapply_state` restore random numbers and hooks' state before the first batch."""
        self._resumed_from = checkpoint

    def reapply_state(self) -> None:
        """Restore random numbers and hooks' state once more: sites since the load may change them."""
        if self._resumed_from is not None:
            checkpoint, self._resumed_from = self._resumed_from, None
            restore_again(self._runner, checkpoint)

    def position(self) -> str:
        """Return where the run is: `epoch 2, iteration 41`, or `epoch 2, after iteration 40`."""
        return describe_position(self._runner, self.phase in IN_ITERATION)

    def _open_data(self) -> None:
        """Begin reading the batches that this epoch still has."""
        runner = self._runner
        batches = self.data.open_epoch(runner.train_loader, runner.epoch, runner.inner_iter)
        self._batches = iter(move_each(batches, runner.device))

    def _finish_data(self) -> None:
        """Ask for a batch after the epoch's last one: samplers finish their epoch then."""
        if self._runner.inner_iter == self._runner.epoch_length:
            next(self._batches, None)

    def _next_batch(self) -> Any:
        runner = self._runner
        self.await_batch()
        batch = next(self._batches, END)
        while self.skipped_batches and (runner.epoch, runner.inner_iter) in self.skipped_batches:
            if batch is END:
                break
            runner.inner_iter += 1  # it counts as read, but not as an iteration
            batch = next(self._batches, END)
        if batch is END:
            self.phase = ""
            runner.sites.costs.discard_sample()
        return batch

    def _handle_requests(self, is_last: bool) -> After:
        if self._roll_back():
            return After.LEAVE_EPOCH
        if is_last or self._runner.inner_iter == self._runner.epoch_length:
            return After.END_OF_EPOCH  # the iteration's seam and the epoch's are one
        self.requests.settle(self._runner)
        return After.NEXT_ITERATION if self._runner.stop_reason is None else After.LEAVE_EPOCH

    def _roll_back(self) -> bool:
        """Roll back if requested; in someone else's loop the counters follow that loop."""
        runner = self._runner
        counters = runner.epoch, runner.inner_iter, runner.iter
        if not self.requests.handle_rollback():
            return False
        if not self.owns_data:
            runner.epoch, runner.inner_iter, runner.iter = counters
            self.reapply_state()
        return True

    def settle_if_due(self) -> None:
        """Settle requests if there are any."""
        if self._runner.iter >= self.requests.due_at:
            self.requests.settle(self._runner)
