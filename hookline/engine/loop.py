"""The training loop: everything that happens around iterations and epochs.

`Loop.iterations` is the loop of a runner and of `for batch in drive(…)`. An external loop calls
`begin_epoch`, `begin_iteration`, `end_iteration` and `end_epoch` instead.
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

END_OF_DATA = object()
IN_ITERATION = frozenset({"data", "before_train_iter", "forward", "optimize", "after_train_iter"})


class After(Enum):
    """The next action of the loop after an iteration."""

    NEXT_ITERATION = "read the next batch"
    END_OF_EPOCH = "end the epoch"
    LEAVE_EPOCH = "leave the epoch without ending it: the run stops or was rolled back"


class Loop:
    """The loop of a run: it counts, calls the sites around iterations, and settles requests."""

    def __init__(self, runner: BaseRunner, iter_limit: int | None = None) -> None:
        self.iter_limit = iter_limit  # the length in iterations; None if it is given in epochs
        self.is_running = False  # whether `train`, `validate` or `test` is in progress
        self.phase = ""  # the part of an iteration, for errors and hang reports; "" between two
        self.accumulating = False  # whether the last gradients wait for an optimizer step
        self.requests = Requests(runner.world)
        self.data = DataPosition()
        self.data_time = 0.0  # seconds of waiting for the current batch
        self.skipped_batches: set[tuple[int, int]] = set()  # (epoch, index), not trained on
        self.owns_data = True  # False if an external loop reads the data
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
                while (batch := self._next_batch()) is not END_OF_DATA:
                    self.begin_iteration(batch)
                    yield runner.batch
                    after = self.end_iteration()
                    if after is not After.NEXT_ITERATION:
                        break
                if after is not After.LEAVE_EPOCH:
                    self._finish_data()
                    self.end_epoch()
            self.data.leave(runner.train_loader, runner.inner_iter)
        finally:
            self._batches = iter(())  # Dropping the iterator ends its worker processes.

    def begin(self) -> None:
        """Settle the requests of `before_train` hooks. Call it before the first epoch."""
        runner = self._runner
        runner.sites.costs.begin_training(runner.iter)
        runner.events.outbox.open()
        if not self.resuming:
            self.data.return_to(runner.train_loader, runner.epoch, runner.inner_iter)
            self.settle_if_due()
        elif runner.iter >= self.requests.due_at:
            self.requests.settle_on_resume(runner)

    def end(self) -> None:
        """Settle the requests that are left. Call it after the last epoch."""
        self.reapply_state()  # The run may have been finished already when it was resumed.
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
        if is_inside:  # Last: opening the data may draw random numbers.
            self.reapply_state()
        self.phase = ""
        if not self.owns_data:
            self.await_batch()

    def call_site(self, site: str) -> None:
        """Call the hooks of a site."""
        for call in self._runner.sites.calls(site):
            call(self._runner)

    def await_batch(self) -> None:
        """Start the timer for `data_time`, and the sample of hook costs if one is due."""
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
        """End an iteration; in an external loop, `is_last` marks the last one of an epoch."""
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
        """End the training part of an epoch: call `after_train_epoch`."""
        runner = self._runner
        self.phase = ""
        runner.sites.costs.discard_sample()  # A sample may have begun without an iteration.
        if self.owns_data and runner.inner_iter == 0:
            raise empty_loader_error(runner.train_loader, runner.epoch)
        self.call_site("after_train_epoch")
        self.requests.mark_epoch_end()

    def end_epoch(self) -> None:
        """End an epoch after its last batch, and settle requests."""
        self.end_train_epoch()
        self.end_whole_epoch()
        self.settle_if_due()

    def end_whole_epoch(self) -> None:
        """End an epoch after its training part: validate, call `after_epoch`, count it."""
        runner = self._runner
        self.requests.handle_validation(runner)
        self.call_site("after_epoch")
        self.requests.handle_validation(runner)  # A hook may have requested it just now.
        is_cut_short = runner.iter == self.iter_limit and runner.inner_iter != runner.epoch_length
        if not is_cut_short:  # A resume with a larger limit continues inside the epoch.
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
        """Compute `max_iters` from `max_epochs`, or vice versa."""
        complete_length(self._runner, self.iter_limit)

    def mark_resumed(self, checkpoint: dict[str, Any]) -> None:
        """Remember a restored checkpoint for `reapply_state`."""
        self._resumed_from = checkpoint

    def reapply_state(self) -> None:
        """Restore random numbers and hook state again: hooks may have changed them since."""
        if self._resumed_from is not None:
            checkpoint, self._resumed_from = self._resumed_from, None
            restore_again(self._runner, checkpoint)
        else:
            self.data.restore_random_numbers()

    def position(self) -> str:
        """Return the position in words: `epoch 2, iteration 41`."""
        return describe_position(self._runner, self.phase in IN_ITERATION)

    def _open_data(self) -> None:
        """Begin reading the remaining batches of this epoch."""
        runner = self._runner
        batches = self.data.open_epoch(runner.train_loader, runner.epoch, runner.inner_iter)
        self._batches = iter(move_each(batches, runner.device))

    def _finish_data(self) -> None:
        """Exhaust the iterator: some samplers end their epoch only then."""
        if self._runner.inner_iter == self._runner.epoch_length:
            next(self._batches, None)

    def _next_batch(self) -> Any:
        runner = self._runner
        self.await_batch()
        batch = next(self._batches, END_OF_DATA)
        while self.skipped_batches and (runner.epoch, runner.inner_iter) in self.skipped_batches:
            if batch is END_OF_DATA:
                break
            runner.inner_iter += 1  # The batch is read, but it is not an iteration.
            batch = next(self._batches, END_OF_DATA)
        if batch is END_OF_DATA:
            self.phase = ""
            runner.sites.costs.discard_sample()
        return batch

    def _handle_requests(self, is_last: bool) -> After:
        if self._roll_back():
            return After.LEAVE_EPOCH
        if is_last or self._runner.inner_iter == self._runner.epoch_length:
            return After.END_OF_EPOCH  # The seam after the epoch settles the requests.
        self.requests.settle(self._runner)
        return After.NEXT_ITERATION if self._runner.stop_reason is None else After.LEAVE_EPOCH

    def _roll_back(self) -> bool:
        """Roll back if requested; an external loop keeps its counters and its data."""
        runner = self._runner
        counters = runner.epoch, runner.inner_iter, runner.iter
        if not self.requests.handle_rollback():
            return False
        if not self.owns_data:
            runner.epoch, runner.inner_iter, runner.iter = counters
            self.reapply_state()
        return True

    def settle_if_due(self) -> None:
        """Settle requests if there are any, or if the ranks must exchange theirs."""
        if self._runner.iter >= self.requests.due_at:
            self.requests.settle(self._runner)
