"""Timings with CUDA events, with stand-ins for machines without a GPU."""

from __future__ import annotations

import warnings

import pytest

from hookline.engine import BaseHook
from hookline.profiling.cuda_events import SYNC_WARNING, CudaPhaseTimer, SyncCounter
from tests.helpers import batches, make_runner
from tests.problems import logged


class Device:
    """A manual clock with events that complete when it reaches them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reached = 0.0

    def event(self) -> Event:
        return Event(self)


class Event:
    def __init__(self, device: Device) -> None:
        self.device = device

    def record(self):
        self.at = self.device.now

    def query(self):
        return self.at <= self.device.reached

    def elapsed_time(self, other):
        return other.at - self.at


def one_iteration(clock: CudaPhaseTimer, device: Device) -> None:
    clock.begin("iteration", "1")
    for phase, milliseconds in (
        ("data", 1),
        ("forward", 10),
        ("backward", 20),
        ("hooks", 2),
        ("optimizer", 5),
    ):
        clock.begin("phase", phase)
        clock.begin("hook", "nobody")
        clock.end()
        device.now += milliseconds
        clock.end()
    clock.end()


def test_phases_are_read_from_events_once_they_have_passed():
    device = Device()
    clock = CudaPhaseTimer(device.event)
    one_iteration(clock, device)
    assert clock.samples == 0
    one_iteration(clock, device)
    assert clock.samples == 0  # the device has not reached it, and the host does not wait
    device.reached = 40.0
    one_iteration(clock, device)
    assert clock.samples == 1
    assert clock.phases == pytest.approx(
        {"data": 0.001, "forward": 0.01, "backward": 0.02, "hooks": 0.002, "optimizer": 0.005}
    )


def test_an_iteration_that_never_came_counts_for_nothing():
    device = Device()
    clock = CudaPhaseTimer(device.event)
    clock.begin("iteration", "1")
    clock.begin("phase", "data")
    clock.end()
    clock.end()
    device.reached = 1e9
    clock.begin("iteration", "2")
    assert clock.samples == 0


def test_a_hook_that_makes_the_host_wait_is_named(tmp_path, caplog, recwarn):
    class Waits(BaseHook):
        def after_train_iter(self):
            warnings.warn(f"{SYNC_WARNING} (triggered somewhere)", UserWarning, stacklevel=2)

    class Warns(BaseHook):
        def after_forward(self):
            warnings.warn("something else", UserWarning, stacklevel=2)

    switched: list[bool] = []
    runner = make_runner(tmp_path, Waits(), Warns(), train_loader=batches(10), max_epochs=1)
    runner.sites.costs.syncs = SyncCounter(switched.append)
    runner.sites.costs.observers = (runner.sites.costs.syncs,)
    runner.train()
    assert runner.sites.costs.syncs.found == {"Waits.after_train_iter": 6}
    assert logged(caplog, "Waits.after_train_iter")
    assert switched == [True, False] * 6
    assert "something else" in [
        str(warning.message) for warning in recwarn
    ]  # others' warnings are passed on


def test_after_a_failure_the_watchers_are_removed(tmp_path):
    class Fails(BaseHook):
        def after_forward(self, runner):
            if runner.iter == 4:
                raise RuntimeError("no")

    switched: list[bool] = []
    filters = list(warnings.filters)
    runner = make_runner(tmp_path, Fails(), train_loader=batches(10), max_epochs=1)
    runner.sites.costs.observers = (SyncCounter(switched.append),)
    with pytest.raises(RuntimeError):
        runner.train()
    assert switched[-1] is False
    assert list(warnings.filters) == filters
