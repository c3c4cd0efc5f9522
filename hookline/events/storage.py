"""EventStorage: scalars with their recent history, and images, figures, histograms, text and files on their way to writers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from statistics import fmean
from typing import Any, NamedTuple, Protocol

import torch

from hookline.events.series import Moment, Scalar, Series, fetch

WINDOW = 256  # values kept per scalar, unless someone takes means over more
LONGEST = 10_000  # the most that a mean can be taken over
PENDING = 1024  # values of one scalar that may wait on the device before they are fetched unasked

Tensor = torch.Tensor


class Clock(Protocol):
    """What tells the storage where in the run it is; the runner does."""

    iter: int
    epoch: int


class Record(NamedTuple):
    """Something other than a scalar, with the moment it belongs to."""

    kind: str  # image, histogram, figure, text or artifact
    name: str
    value: Any
    iter: int
    epoch: int
    time: float


class Mean(NamedTuple):
    """A mean that is reported under a name of its own."""

    of: str
    over: int | str  # so many values, or "epoch", or "global"


class EventStorage:
    """Records values as they come, tensors on their device; `flush` fetches them all in one transfer.

    Memory and cost per record stay the same however long a run is: each scalar keeps its last values only.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moment: Moment = (-1, -1, 0.0)
        self._series: dict[str, Series] = {}
        self._window = WINDOW
        self._means: dict[str, Mean] = {}
        self.losses_of = -1  # the iteration whose losses are recorded, for several hooks may see to that
        self.recorded = 0  # how many scalars so far; whoever reports them can tell whether there are new ones
        self.listeners: list[Any] = []  # writers that take records as they come
        self.sources: list[Callable[[], object]] = []  # called before anything is read: hooks that record many values at a time
        self._apart: dict[str, tuple[bool, list[Any]]] = {}  # what was recorded in the last evaluation, and whether it is smoothed

    def put_scalar(self, name: str, value: Any, smoothing_hint: bool = True) -> None:
        """Record a number or a tensor of one; without smoothing its latest value is shown instead of a mean.

        A device's tensor is read at the next report: one that is changed in place until then must be cloned.
        """
        series = self._series.get(name) or self._new_series(name, smoothing_hint)
        if type(value) is not float:
            if type(value) is Tensor and value.is_cpu and value.numel() == 1:
                value = float(value.item())  # there is no device to wait for
            else:
                value = _checked(name, value)
                series.on_device = series.on_device or type(value) is not float
        clock, moment = self._clock, self._moment
        if clock.iter != moment[0] or clock.epoch != moment[1]:
            moment = self._moment = (clock.iter, clock.epoch, time.time())
        series.pending.append(value)
        series.pending_moments.append(moment)
        self.recorded += 1
        if len(series.pending) >= PENDING:
            self.flush()

    def put_scalars(self, scalars: Mapping[str, Any] | None = None, *, smoothing_hint: bool = True, **more: Any) -> None:
        """Record several at once, from a mapping or by keyword."""
        for name, value in {**(scalars or {}), **more}.items():
            self.put_scalar(name, value, smoothing_hint)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Keep what is recorded meanwhile apart: it belongs to the results of an evaluation, and not to the means of training."""
        self._apart = {}
        self.put_scalar = self._put_apart  # type: ignore[method-assign]  # so that to ask costs training nothing
        try:
            yield
        finally:
            del self.put_scalar

    def evaluated(self) -> dict[str, float]:
        """What was recorded in the last evaluation, or the current one: each scalar's mean over it, or its last value."""
        for _, values in self._apart.values():
            values[:] = [float(value) for value in values]
        return {name: fmean(values) if smoothed else values[-1] for name, (smoothed, values) in self._apart.items()}

    def put_history(self, name: str, values: Iterable[float], moments: Iterable[Moment]) -> None:
        """Record what was noted in the meantime: numbers, each with the iteration, epoch and wall time that it belongs to."""
        series = self._series.get(name) or self._new_series(name, smoothed=True)
        before = len(series.pending)
        series.pending.extend(values)
        series.pending_moments.extend(moments)
        self.recorded += len(series.pending) - before
        if len(series.pending) >= PENDING:
            self.flush()

    def put_image(self, name: str, image: Any) -> None:
        """Record a picture: an array or tensor, HW, HWC or CHW, of bytes or of numbers from 0 to 1."""
        self._emit("image", name, image)

    def put_histogram(self, name: str, values: Any) -> None:
        """Record how the elements of an array or tensor are distributed, or counts and edges of a histogram made already."""
        self._emit("histogram", name, values)

    def put_figure(self, name: str, figure: Any) -> None:
        """Record a matplotlib figure."""
        self._emit("figure", name, figure)

    def put_text(self, name: str, text: str) -> None:
        self._emit("text", name, text)

    def put_artifact(self, name: str, path: Any) -> None:
        """Record a file."""
        self._emit("artifact", name, path)

    def keep(self, count: int) -> None:
        """Keep at least so many values of each scalar, for means over as many (10,000 at most)."""
        self._window = max(self._window, min(count, LONGEST))
        for series in self._series.values():
            series.resize(self._window)

    def add_mean(self, name: str, of: str, over: int | str) -> None:
        """From now on report the mean of a scalar over so many values, the `epoch` or all of the run (`global`) as `name`."""
        if over not in ("epoch", "global") and not (isinstance(over, int) and 1 <= over <= LONGEST):
            raise ValueError(f"a mean is over 'epoch', 'global' or 1 to {LONGEST} values, got {over!r}")
        self._means[name] = Mean(of, over)
        if isinstance(over, int):
            self.keep(over)
        elif of in self._series and self._series[of].running is None:
            self.flush()
            self._series[of].running = self._running(of)

    def latest(self) -> dict[str, float]:
        """The last value of each scalar."""
        self.flush()
        of_training = {name: series.window[-1] for name, series in self._series.items() if series.window}
        return of_training | {name: float(values[-1]) for name, (_, values) in self._apart.items()}

    def history(self, name: str) -> list[Scalar]:
        """The last values of a scalar that this process has recorded, each with iteration, epoch and wall time."""
        self.flush()
        series = self._series.get(name)
        return [] if series is None else series.history()

    def recorded_at(self, name: str) -> int:
        """The iteration of a scalar's last value, -1 if this process has recorded none."""
        self._ask()
        series = self._series.get(name)
        return -1 if series is None else series.last_iter()

    def means(self, count: int, since: int | None = None) -> dict[str, float]:
        """The mean of each scalar over its last `count` values, or as `add_mean` has it; the last value where it is not smoothed.

        With `since` those are left out of which nothing was recorded from that iteration on.
        """
        self.flush()
        known = {name: series for name, series in self._series.items() if since is None or series.last_iter() >= since}
        result = {name: series.mean(count if series.smoothed else 1) for name, series in known.items() if series.window}
        for name, mean in self._means.items():
            if mean.of in known and known[mean.of].window:
                series = known[mean.of]
                result[name] = series.mean(mean.over) if isinstance(mean.over, int) else series.running_mean(mean.over)
        return result

    def flush(self) -> None:
        """Fetch what still waits on a device, in one transfer for each."""
        self._ask()
        waiting = [series for series in self._series.values() if series.pending]
        fetch(waiting)
        for series in waiting:
            series.settle()

    def state_dict(self) -> dict[str, Any]:
        """What smoothing needs after a resume."""
        self.flush()
        return {name: series.state_dict() for name, series in self._series.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._ask()  # what they have noted so far is to be forgotten too
        self._series.clear()
        self.losses_of = -1
        for name, saved in state.items():
            self._new_series(name, saved["smoothed"]).load_state_dict(saved)

    def _put_apart(self, name: str, value: Any, smoothing_hint: bool = True) -> None:
        self._apart.setdefault(name, (smoothing_hint, []))[1].append(_checked(name, value))

    def _ask(self) -> None:
        for source in self.sources:
            source()

    def _new_series(self, name: str, smoothed: bool) -> Series:
        series = self._series[name] = Series(smoothed, self._window, self._running(name))
        return series

    def _running(self, name: str) -> dict[str, list[float]] | None:
        """Sums for the means over epochs and the whole run, where they are wanted."""
        kinds = {str(mean.over) for mean in self._means.values() if mean.of == name and isinstance(mean.over, str)}
        return {kind: [0.0, 0.0, -1.0] for kind in sorted(kinds)} or None

    def _emit(self, kind: str, name: str, value: Any) -> None:
        record = Record(kind, name, value, self._clock.iter, self._clock.epoch, time.time())
        for listener in self.listeners:
            listener.write(record)


def _checked(name: str, value: Any) -> Any:
    """A number, or a detached tensor of one; here, where the mistake is, and not at the next report."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"put_scalar({name!r}): a scalar is one number, got a tensor of shape {tuple(value.shape)}")
        return value.detach()
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"put_scalar({name!r}): a scalar is a number or a tensor of one, got {value!r}") from error
