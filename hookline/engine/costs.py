"""What hooks and phases cost: timed in a few iterations, for which the loop gets other tuples, and always where it is rare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from hookline.engine.arguments import Call
from hookline.engine.device_clock import DeviceClock, SyncWatch

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

PHASES = ("data", "forward", "backward", "optimizer", "hooks")
# The sites of an iteration, each with the phase that begins there and the one that begins when its hooks have run.
HOT: dict[str, tuple[str, str | None]] = {
    "before_train_iter": ("hooks", "forward"),
    "after_forward": ("hooks", None),
    "optimize": ("backward", "hooks"),
    "after_backward": ("hooks", "optimizer"),
    "after_optimizer_step": ("hooks", "optimizer"),
    "after_train_iter": ("hooks", None),
}
FIRST_SAMPLES = range(2, 8)  # of this process's iterations: after the slowest ones, and soon enough for a short run
STRIDE = 31  # a prime, so that what a hook does every so many iterations is met as often as it happens
NEVER = 2**63


class Watcher(Protocol):
    """Follows what happens while iterations are timed. What begins ends in the opposite order."""

    def between(self, runner: BaseRunner) -> None:
        """An iteration is about to begin, its batch not yet asked for."""

    def begin(self, kind: str, name: str) -> None:
        """`kind` is iteration, phase, hook or seam."""

    def end(self) -> None:
        """What began last is over."""


class Cell:
    """How often something was timed, and how long it took."""

    __slots__ = ("count", "longest", "total")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.count, self.total, self.longest = 0, 0.0, 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds


class Costs:
    """The times of a run. The loop looks at nothing but `due`, the iteration before which it calls `turn`."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], Cell] = {}  # by hook and site; those of an iteration count timed iterations only
        self.seams = {"validate": Cell(), "save": Cell()}
        self.phases = dict.fromkeys(PHASES, 0.0)  # seconds of all timed iterations
        self.samples = 0  # how many those are
        self.started = 0.0
        self.first = 0  # the iteration that this process began with
        self.budget_told = False
        self.due = NEVER
        self.watchers: tuple[Watcher, ...] = ()
        self.device_clock: DeviceClock | None = None
        self.syncs: SyncWatch | None = None
        self.after_sample: Callable[[BaseRunner], object] = lambda runner: None
        self.swap: Callable[[bool], None] = lambda timed: None  # gives the loop the timed tuples, or the plain ones
        self._forced: tuple[Watcher, ...] = ()  # the watchers for whom every iteration is timed
        self._owner = Cell()
        self._sample = dict(self.phases)
        self._phase, self._since = "", -1.0  # negative while no iteration is timed
        self._next = self._turned = 0

    def start(self, runner: BaseRunner) -> None:
        """Forget earlier runs and get ready for this one."""
        self.drop()
        for cell in (*self.cells.values(), *self.seams.values()):
            cell.reset()
        self.phases, self.samples, self.started = dict.fromkeys(PHASES, 0.0), 0, perf_counter()
        self.budget_told = False
        if runner.device.type == "cuda":
            self.watchers = tuple(watcher for watcher in self.watchers if watcher not in (self.device_clock, self.syncs))
            self.device_clock, self.syncs = DeviceClock(), SyncWatch()
            self.watchers += (self.device_clock, self.syncs)

    def begin_training(self, runner: BaseRunner) -> None:
        """The first iteration of this process is about to begin."""
        self.first, self._turned = runner.iter, -1
        self._schedule(runner.iter)

    def watch(self, watcher: Watcher) -> None:
        """Time every iteration from the next one on, and tell a watcher about each."""
        self.watchers += (watcher,)
        self._forced += (watcher,)
        self.due = 0

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers = tuple(other for other in self.watchers if other is not watcher)
        self._forced = tuple(other for other in self._forced if other is not watcher)

    def turn(self, runner: BaseRunner) -> None:
        """Between two iterations: time the next one, if it is to be timed."""
        self.drop()
        if runner.inner_iter == runner.epoch_length:
            return  # the epoch is over, and the loop about to find out
        if runner.iter != self._turned:  # an epoch that turns out to be over brings the loop here twice
            self._turned = runner.iter
            for watcher in self.watchers:
                watcher.between(runner)
        if not self._forced and runner.iter < self._next:
            self.due = self._next
            self.swap(False)
            return
        self.swap(True)
        self.due = 0 if self._forced else runner.iter + 1
        self._sample = dict.fromkeys(PHASES, 0.0)
        self._begin("iteration", str(runner.iter + 1))
        self._begin("phase", "data")
        self._phase, self._since = "data", perf_counter()

    def drop(self) -> None:
        """Forget the iteration that is being timed, if one is: it did not come to its end."""
        if self._since >= 0:
            self._since = -1.0
            self._end()
            self._end()
            self.due = 0

    @contextmanager
    def seam(self, name: str) -> Iterator[None]:
        """Time what happens between two iterations: `validate` or `save`."""
        self._begin("seam", name)
        started = perf_counter()
        try:
            yield
        finally:
            self.seams[name].add(perf_counter() - started)
            self._end()

    def seconds(self) -> float:
        """How long the run takes so far."""
        return perf_counter() - self.started

    def measured(self) -> tuple[int, dict[str, float]]:
        """How many iterations were timed, and the seconds of their phases; the device's own time where it has a clock."""
        if self.device_clock is not None:
            return self.device_clock.samples, {phase: self.device_clock.phases.get(phase, 0.0) for phase in PHASES}
        return self.samples, self.phases

    # What the dispatch makes its tuples with.

    def timed(self, call: Call, hook: str, site: str) -> Call:
        """A hook's call that times itself; the owner of `optimize` is known by the phases of its work."""
        cell = self.cells.setdefault((hook, site), Cell())
        if site == "optimize":
            self._owner = cell
            return call
        label = f"{hook}.{site}"

        def timed_call(runner: BaseRunner) -> None:
            watchers = self.watchers
            for watcher in watchers:
                watcher.begin("hook", label)
            started = perf_counter()
            try:
                call(runner)
            finally:
                cell.add(perf_counter() - started)
                for watcher in watchers:
                    watcher.end()

        return timed_call

    def with_phases(self, site: str, calls: tuple[Call, ...]) -> tuple[Call, ...]:
        """The calls of a site of an iteration, with those between them that switch from phase to phase."""
        if site == "optimize" and not calls:
            return ()  # the model's own step does it all
        before, after = HOT[site]
        first: tuple[Call, ...] = (partial(self._enter, before),)
        if site == "after_train_iter":
            return (*first, *calls, self._close)
        return (*first, *calls) if after is None else (*first, *calls, partial(self._enter, after))

    def _enter(self, phase: str, runner: BaseRunner) -> None:
        if self._since < 0:
            return
        now = perf_counter()
        self._sample[self._phase] += now - self._since
        self._end()
        self._begin("phase", phase)
        self._phase, self._since = phase, now

    def _close(self, runner: BaseRunner) -> None:
        """The iteration is over; what was measured of it counts."""
        if self._since < 0:
            return
        self._sample[self._phase] += perf_counter() - self._since
        self._since = -1.0
        self._end()
        self._end()
        self.samples += 1
        for phase, seconds in self._sample.items():
            self.phases[phase] += seconds
        self._owner.add(self._sample["backward"] + self._sample["optimizer"])
        self._schedule(runner.iter + 1)
        if not self._forced:
            self.swap(False)
        self.after_sample(runner)

    def _schedule(self, iteration: int) -> None:
        """Choose the next iteration to time, from a given one on."""
        offset = iteration - self.first
        in_time = max(offset, FIRST_SAMPLES.start) if offset < FIRST_SAMPLES.stop else -(-offset // STRIDE) * STRIDE
        self._next = self.first + in_time
        self.due = 0 if self._forced else self._next

    def _begin(self, kind: str, name: str) -> None:
        for watcher in self.watchers:
            watcher.begin(kind, name)

    def _end(self) -> None:
        for watcher in self.watchers:
            watcher.end()
