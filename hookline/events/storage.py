"""The store of recorded events: scalars with recent history, and records for the writers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch

from hookline.errors import ConfigError
from hookline.events.named_means import PERIODS, NamedMean
from hookline.events.outbox import Outbox, Point, Record
from hookline.events.series import Moment, Scalar, Series, fetch
from hookline.secrets import mask_text

WINDOW = 256  # values kept per scalar by default
LONGEST = 10_000  # the longest window of a mean
PENDING = 1024  # values of one scalar that may wait before they are fetched

Tensor = torch.Tensor


class Clock(Protocol):
    """The counters of the run."""

    iter: int
    epoch: int


class EventStorage:
    """The store of recorded values. Tensors stay on their device until `flush` fetches them.

    There are two kinds of scalars. Those that the loop produces in each iteration
    (`put_iteration_scalar`: loss, times, learning rates) are written at an interval, as means.
    All others (`put_scalar`) are written once each, at the step where they were recorded.

    Each scalar keeps only its last values, so memory and cost do not grow with the run.

    Args:
        clock: The counters of the run.
        locate: Takes the clock; returns the iteration and the epoch, counted from 1, that a record
            made now belongs to.
    """

    def __init__(
        self, clock: Clock, locate: Callable[[Any], tuple[int, int]] | None = None
    ) -> None:
        self._clock = clock
        self._locate = locate or _counters_of
        self.outbox = Outbox()
        self._moment: Moment = (-1, -1, 0.0)
        self._series: dict[str, Series] = {}
        self._evaluated: dict[str, Series] = {}  # of the current or last evaluation
        self._into = self._series  # the target of new scalars
        self._masked_names: dict[str, str] = {}
        self._window = WINDOW
        self._means: dict[str, NamedMean] = {}
        self.losses_of = -1  # the last iteration whose losses a hook has recorded
        # The learning rates of the last step, if a schedule has changed them since.
        self.step_learning_rates: dict[str, float] | None = None
        self.metrics_by_epoch = True  # whether the epoch is the x axis of metrics
        # Called before a read: hooks that record many values at a time.
        self.sources: list[Callable[[], object]] = []

    @property
    def listeners(self) -> list[Any]:
        """The writers that get every record at once."""
        return self.outbox.listeners

    def put_scalar(
        self,
        name: str,
        value: Any,
        smoothing_hint: bool = True,
        *,
        global_step: int | None = None,
    ) -> None:
        """Record a number or a tensor with one element, to be written once, at its step.

        A scalar that is recorded during an evaluation is part of its results.

        A tensor on a device is read at the next report, so clone one that changes in place.

        Args:
            name: The name of the scalar.
            value: The number.
            smoothing_hint: Whether the result of an evaluation is the mean of its values or the
                last one.
            global_step: Its position on the x axis; by default the iteration it belongs to.
        """
        value = _checked(name, value)
        name = self._masked(name)
        if self._into is self._evaluated and global_step is None:
            self._append(self._evaluated, name, value, smoothing_hint)
            return
        self._append(self._series, name, value, smoothing_hint, is_point=True)
        iteration, epoch = self._locate(self._clock)
        step = iteration if global_step is None else int(global_step)
        mode = "val" if self._into is self._evaluated else "train"
        point = Point(mode, name, value, iteration, epoch, step, time.time())
        self.outbox.put_point(point)

    def put_scalars(
        self,
        scalars: Mapping[str, Any] | None = None,
        *,
        smoothing_hint: bool = True,
        global_step: int | None = None,
        **more: Any,
    ) -> None:
        """Record several scalars, from a mapping or by keyword."""
        for name, value in {**(scalars or {}), **more}.items():
            self.put_scalar(name, value, smoothing_hint, global_step=global_step)

    def put_iteration_scalar(self, name: str, value: Any, smoothed: bool = True) -> None:
        """Record a scalar that every iteration has; writers get its mean at their interval.

        Args:
            name: The name of the scalar.
            value: The number, or a tensor with one element.
            smoothed: Whether writers get the mean of the interval or the last value.
        """
        if type(value) is not float:
            if type(value) is Tensor and value.is_cpu and value.numel() == 1:
                value = float(value.item())  # There is no device to wait for.
            else:
                value = _checked(name, value)
        self._append(self._into, name, value, smoothed)

    def put_iteration_scalars(self, scalars: Mapping[str, Any], smoothed: bool = True) -> None:
        """Record several scalars that every iteration has."""
        for name, value in scalars.items():
            self.put_iteration_scalar(name, value, smoothed)

    @contextmanager
    def evaluation_scope(self) -> Iterator[None]:
        """Record scalars as results of an evaluation, apart from those of training."""
        self._evaluated = {}
        self._into = self._evaluated
        try:
            yield
        finally:
            self._into = self._series

    def evaluation_scalars(self) -> dict[str, float]:
        """Return the mean of each scalar over the current or last evaluation, or its last value."""
        self.flush()
        return {
            name: series.running_mean("global") if series.smoothed else series.window[-1]
            for name, series in self._evaluated.items()
        }

    def put_history(self, name: str, values: Iterable[float], moments: Iterable[Moment]) -> None:
        """Record past values of a scalar that every iteration has, with their moments."""
        name = self._masked(name)
        series = self._series.get(name) or self._new_series(name, True, self._series)
        series.pending.extend(values)
        series.pending_moments.extend(moments)
        if len(series.pending) >= PENDING:
            self.flush()

    def put_image(self, name: str, image: Any, *, global_step: int | None = None) -> None:
        """Record an image: an array or tensor HW, HWC or CHW of bytes or of numbers from 0 to 1."""
        self._emit("image", name, image, global_step)

    def put_histogram(self, name: str, values: Any, *, global_step: int | None = None) -> None:
        """Record a histogram of an array or tensor, or ready counts and edges."""
        self._emit("histogram", name, values, global_step)

    def put_figure(self, name: str, figure: Any, *, global_step: int | None = None) -> None:
        """Record a matplotlib figure."""
        self._emit("figure", name, figure, global_step)

    def put_text(self, name: str, text: str, *, global_step: int | None = None) -> None:
        """Record a text."""
        self._emit("text", name, text, global_step)

    def put_artifact(self, name: str, path: Any) -> None:
        """Record a file."""
        self._emit("artifact", name, path, None)

    def keep(self, count: int) -> None:
        """Keep at least `count` values of each scalar (10,000 at most), for means over them."""
        self._window = max(self._window, min(count, LONGEST))
        for series in self._series.values():
            series.resize(self._window)

    def add_mean(self, name: str, of: str, over: int | str) -> None:
        """Report the mean of a scalar under another name.

        Args:
            name: The name of the mean.
            of: The name of the scalar.
            over: The number of values, `epoch`, or `global` for the whole run.
        """
        if over not in PERIODS and not (isinstance(over, int) and 1 <= over <= LONGEST):
            message = f"the window of a mean must be 'epoch', 'global' or 1 to {LONGEST} values"
            raise ConfigError(message, component="add_mean", parameter="over", value=over)
        of = self._masked(of)
        self._means[self._masked(name)] = NamedMean(of, over)
        if isinstance(over, int):
            self.keep(over)
        elif of in self._series and self._series[of].running is None:
            self.flush()
            self._series[of].running = self._running(of)

    def latest(self) -> dict[str, float]:
        """Return the last value of each scalar."""
        self.flush()
        return {
            name: series.window[-1]
            for name, series in {**self._series, **self._evaluated}.items()
            if series.window
        }

    def history(self, name: str) -> list[Scalar]:
        """Return the last values of a scalar with iteration, epoch and wall time."""
        self.flush()
        series = self._series.get(self._masked(name))
        return [] if series is None else series.history()

    def recorded_at(self, name: str) -> int:
        """Return the iteration of a scalar's last value; -1 if there is none."""
        self._ask()
        series = self._series.get(self._masked(name))
        return -1 if series is None else series.last_iter()

    def means(self, count: int, since: int | None = None) -> dict[str, float]:
        """Return the mean of each iteration scalar over its last `count` values, and added means.

        A scalar that is not smoothed has its last value. With `since`, scalars without a value
        from that iteration on are left out.
        """
        self.flush()
        known = {
            name: series
            for name, series in self._series.items()
            if since is None or series.last_iter() >= since
        }
        result = {
            name: series.mean(count if series.smoothed else 1)
            for name, series in known.items()
            if series.window and not series.is_point
        }
        for name, mean in self._means.items():
            if mean.of in known and known[mean.of].window:
                series = known[mean.of]
                result[name] = (
                    series.mean(mean.over)
                    if isinstance(mean.over, int)
                    else series.running_mean(mean.over)
                )
        return result

    def flush(self) -> None:
        """Fetch the waiting values, in one transfer for each device."""
        self._ask()
        waiting = [
            series
            for series in (*self._series.values(), *self._evaluated.values())
            if series.pending
        ]
        fetch(waiting)
        for series in waiting:
            series.settle()

    def state_dict(self) -> dict[str, Any]:
        """Return the recent values, which smoothing needs after a resume."""
        self.outbox.deliver()  # A run that resumes from this state does not record them again.
        self.flush()
        return {name: series.state_dict() for name, series in self._series.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the values that `state_dict` returned."""
        self._ask()  # Drop the values that hooks have not recorded yet.
        self._series.clear()
        self.losses_of = -1
        # A rollback: the points of the repeated iterations will be recorded again.
        self.outbox.drop_after(self._clock.iter)
        for name, saved in state.items():
            series = self._new_series(name, saved["smoothed"], self._series)
            series.load_state_dict(saved)

    def _ask(self) -> None:
        for source in self.sources:
            source()

    def _new_series(self, name: str, smoothed: bool, among: dict[str, Series]) -> Series:
        if among is self._series:
            series = Series(smoothed, self._window, self._running(name))
        else:
            series = Series(smoothed, 1, {"global": [0.0, 0.0, -1.0]})
        among[name] = series
        return series

    def _running(self, name: str) -> dict[str, list[float]] | None:
        """Return the sums for means over epochs and the whole run, if there are such means."""
        kinds = {
            str(mean.over)
            for mean in self._means.values()
            if mean.of == name and isinstance(mean.over, str)
        }
        return {kind: [0.0, 0.0, -1.0] for kind in sorted(kinds)} or None

    def _append(
        self,
        among: dict[str, Series],
        name: str,
        value: Any,
        smoothed: bool,
        is_point: bool = False,
    ) -> None:
        """Add a value to the recent values of its scalar."""
        series = among.get(name)
        if series is None:
            name = self._masked(name)
            series = among.get(name)
        if series is None:
            series = self._new_series(name, smoothed, among)
            series.is_point = is_point
        if type(value) is not float:
            series.on_device = True
        clock, moment = self._clock, self._moment
        if clock.iter != moment[0] or clock.epoch != moment[1]:
            moment = self._moment = (clock.iter, clock.epoch, time.time())
        series.pending.append(value)
        series.pending_moments.append(moment)
        if len(series.pending) >= PENDING:
            self.flush()

    def _emit(self, kind: str, name: str, value: Any, global_step: int | None) -> None:
        iteration, epoch = self._locate(self._clock)
        record = Record(kind, name, value, iteration, epoch, time.time(), global_step)
        self.outbox.put_record(record)

    def _masked(self, name: str) -> str:
        """Return the name under which a scalar is kept and written, with secrets masked."""
        masked = self._masked_names.get(name)
        if masked is None:
            masked = self._masked_names[name] = mask_text(name)
        return masked


def _counters_of(clock: Clock) -> tuple[int, int]:
    return clock.iter, clock.epoch + 1


def _checked(name: str, value: Any) -> Any:
    """Return a number or a detached tensor; raise here, where the mistake is made."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            message = f"a scalar must be one number, not a tensor of shape {tuple(value.shape)}"
            raise ConfigError(message, component="put_scalar", parameter=name)
        return value.detach()
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        message = f"{name!r} must be a number or a tensor with one element"
        raise ConfigError(message, component="put_scalar", parameter=name, value=value) from error
