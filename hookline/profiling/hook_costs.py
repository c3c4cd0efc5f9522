"""Measure the time of hooks and phases.

Sites of an iteration are sampled: for a few iterations the loop gets callables that time
themselves. All other sites are rare and always timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from hookline.profiling.cuda_events import CudaPhaseTimer, SyncCounter

Call = Callable[[Any], Any]

PHASES = ("data", "forward", "backward", "optimizer", "hooks")
# The sites of an iteration: the phase that begins there, and the one that begins after its hooks.
HOT_SITES: dict[str, tuple[str, str | None]] = {
    "before_train_iter": ("hooks", "forward"),
    "after_forward": ("hooks", None),
    "optimize": ("backward", "hooks"),
    "after_backward": ("hooks", "optimizer"),
    "after_optimizer_step": ("hooks", "optimizer"),
    "after_train_iter": ("hooks", None),
}
# Iterations of this process that are sampled first: after the slowest, early for a short run.
FIRST_SAMPLES = range(2, 8)
SAMPLE_STRIDE = 31  # a prime, so that the samples do not follow the interval of a hook
NEVER = 2**63


class Observer(Protocol):
    """Follows sampled iterations. Spans end in the opposite order in which they begin."""

    def before_iteration(self, runner: Any) -> None:
        """React to an iteration that is about to begin; its batch is not loaded yet."""

    def begin(self, kind: str, name: str) -> None:
        """Begin a span; its kind is iteration, phase, hook or seam."""

    def end(self) -> None:
        """End the span that began last."""


class Timing:
    """The number of measurements, their sum and the longest one, in seconds."""

    __slots__ = ("count", "longest", "total")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.count = 0
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds


class HookCosts:
    """The times of a run. In the loop, they cost one comparison of the iteration with `due`.

    Args:
        select: Gives the loop the timed callables of an iteration's sites, or the plain ones.
    """

    def __init__(self, select: Callable[[bool], None]) -> None:
        self.timings: dict[tuple[str, str], Timing] = {}  # by hook and site
        self.seams = {"validate": Timing(), "save": Timing()}
        self.phases = dict.fromkeys(PHASES, 0.0)  # seconds of all sampled iterations
        self.samples = 0
        self.started = 0.0
        self.first = 0  # the iteration that this process began with
        self.budget = 1.0  # the share of the time above which hooks are reported
        self.budget_warned = False
        self.earlier: dict[str, Any] | None = None  # the table of the run before a resume
        self.due = NEVER
        self.observers: tuple[Observer, ...] = ()
        self.cuda_timer: CudaPhaseTimer | None = None
        self.syncs: SyncCounter | None = None
        self.after_sample: Callable[[Any], object] = lambda runner: None
        self._select = select
        self._forced: tuple[Observer, ...] = ()  # those for which every iteration is sampled
        self._owner = Timing()  # of the hook that owns `optimize`
        self._sample = dict(self.phases)
        self._phase = ""
        self.excluded_seconds = 0.0  # time between iterations that belongs to none
        self._since = -1.0  # negative while no iteration is sampled
        self._next = 0
        self._last_announced = 0

    def start(self, runner: Any) -> None:
        """Forget earlier runs and prepare for this one."""
        self.discard_sample()
        for timing in (*self.timings.values(), *self.seams.values()):
            timing.reset()
        self.phases = dict.fromkeys(PHASES, 0.0)
        self.samples = 0
        self.started = perf_counter()
        self.budget_warned = False
        self.earlier = None
        if runner.device.type == "cuda":
            own = (self.cuda_timer, self.syncs)
            self.observers = tuple(each for each in self.observers if each not in own)
            self.cuda_timer = CudaPhaseTimer()
            self.syncs = SyncCounter()
            self.observers += (self.cuda_timer, self.syncs)

    def begin_training(self, iteration: int) -> None:
        """Choose the first samples of this process."""
        self.first = iteration
        self._last_announced = -1
        self._schedule(iteration)

    def add_observer(self, observer: Observer) -> None:
        """Sample every iteration from the next one on, for an observer."""
        self.observers += (observer,)
        self._forced += (observer,)
        self.due = 0

    def remove_observer(self, observer: Observer) -> None:
        """Stop sampling for an observer."""
        self.observers = tuple(other for other in self.observers if other is not observer)
        self._forced = tuple(other for other in self._forced if other is not observer)

    def begin_sample(self, runner: Any) -> None:
        """Sample the next iteration if it is due. Called between two iterations."""
        self.discard_sample()
        if runner.inner_iter == runner.epoch_length:
            return  # the epoch is over
        if runner.iter != self._last_announced:  # an epoch without a length ends after a call here
            self._last_announced = runner.iter
            for observer in self.observers:
                observer.before_iteration(runner)
        if not self._forced and runner.iter < self._next:
            self.due = self._next
            self._select(False)
            return
        self._select(True)
        self.due = 0 if self._forced else runner.iter + 1
        self._sample = dict.fromkeys(PHASES, 0.0)
        self._begin("iteration", str(runner.iter + 1))
        self._begin("phase", "data")
        self._phase = "data"
        self._since = perf_counter()

    def discard_sample(self) -> None:
        """Forget the iteration that is being sampled: it did not complete."""
        if self._since >= 0:
            self._since = -1.0
            self._end()
            self._end()
            self.due = 0

    @contextmanager
    def time_seam(self, name: str) -> Iterator[None]:
        """Time a validation or a save between two iterations."""
        self._begin("seam", name)
        started = perf_counter()
        try:
            yield
        finally:
            self.seams[name].add(perf_counter() - started)
            self._end()

    def seconds(self) -> float:
        """Return how long the run has taken so far."""
        return perf_counter() - self.started

    def phase_totals(self) -> tuple[int, dict[str, float]]:
        """Return the number of samples and the seconds of their phases, on the GPU if any."""
        if self.cuda_timer is not None:
            totals = self.cuda_timer.phases
            return self.cuda_timer.samples, {phase: totals.get(phase, 0.0) for phase in PHASES}
        return self.samples, self.phases

    def timed(self, call: Call, hook: str, site: str) -> Call:
        """Return a hook's callable that times itself; phases time the owner of `optimize`."""
        timing = self.timings.setdefault((hook, site), Timing())
        if site == "optimize":
            self._owner = timing
            return call
        label = f"{hook}.{site}"

        def timed_call(runner: Any) -> None:
            observers = self.observers
            for observer in observers:
                observer.begin("hook", label)
            started = perf_counter()
            try:
                call(runner)
            finally:
                timing.add(perf_counter() - started)
                for observer in observers:
                    observer.end()

        return timed_call

    def with_phases(self, site: str, calls: tuple[Call, ...]) -> tuple[Call, ...]:
        """Add the calls that switch between phases to the callables of a site."""
        if site == "optimize" and not calls:
            return ()  # the model's own step runs backward and the optimizer
        before, after = HOT_SITES[site]
        calls = (partial(self._enter, before), *calls)
        if site == "after_train_iter":
            return (*calls, self._finish_sample)
        return calls if after is None else (*calls, partial(self._enter, after))

    def _enter(self, phase: str, runner: Any) -> None:
        if self._since < 0:
            return
        now = perf_counter()
        self._sample[self._phase] += now - self._since
        self._end()
        self._begin("phase", phase)
        self._phase = phase
        self._since = now

    def _finish_sample(self, runner: Any) -> None:
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
            self._select(False)
        self.after_sample(runner)

    def _schedule(self, iteration: int) -> None:
        """Choose the next iteration to sample, from a given one on."""
        offset = iteration - self.first
        if offset < FIRST_SAMPLES.stop:
            offset = max(offset, FIRST_SAMPLES.start)
        else:
            offset = -(-offset // SAMPLE_STRIDE) * SAMPLE_STRIDE
        self._next = self.first + offset
        self.due = 0 if self._forced else self._next

    def _begin(self, kind: str, name: str) -> None:
        for observer in self.observers:
            observer.begin(kind, name)

    def _end(self) -> None:
        for observer in self.observers:
            observer.end()
