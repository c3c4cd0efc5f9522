"""IterTimerHook: times, rates, the ETA, and the lines at the end."""

from __future__ import annotations

import logging
import time

import pytest

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook, EvalHook, IterTimerHook
from tests.clock import FakeClock, SlowLoader
from tests.helpers import batches, make_runner


class Slow(BaseHook):
    """A hook that takes 5 ms in each iteration, more in the first three, and some in validation."""

    def __init__(self, clock: FakeClock, first: float = 0.0, val: float = 0.0) -> None:
        self.clock = clock
        self.first = first
        self.val = val

    def before_train_iter(self, runner):
        self.clock.advance(0.005)
        if runner.iter < 3:
            self.clock.advance(self.first)

    def before_val_epoch(self):
        self.clock.advance(self.val)


class Collect(BaseHook):
    priority = "HIGHEST"  # Runs after the other hooks.

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []

    def after_train_iter(self, events):
        self.seen.append(events.latest())


def test_every_iteration_has_its_time_and_the_time_it_waited_for_its_batch(tmp_path, clock):
    collect = Collect()
    hooks = [clock.drive(IterTimerHook()), Slow(clock), collect]
    make_runner(tmp_path, *hooks, train_loader=SlowLoader(clock, 5, 0.01), max_epochs=1).train()
    assert [row["data_time"] for row in collect.seen] == pytest.approx([0.01] * 5)
    assert [row["time"] for row in collect.seen] == pytest.approx([0.015] * 5)


@pytest.mark.parametrize(("frequency", "expected"), [(None, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4])])
def test_times_belong_to_the_iterations_and_epochs_that_they_are_of(tmp_path, frequency, expected):
    hook = IterTimerHook()
    hook.frequency = frequency or hook.frequency
    runner = make_runner(tmp_path, hook, train_loader=batches(3), max_epochs=2)
    before = time.time()
    runner.train()
    times = runner.events.history("time")
    assert [(scalar.iter, scalar.epoch) for scalar in times] == [
        (number, number // 3) for number in expected
    ]
    assert before <= times[0].time <= times[-1].time <= time.time()
    assert [scalar.iter for scalar in runner.events.history("data_time")] == expected


def test_waiting_for_data_is_neither_other_hooks_nor_validation(tmp_path, clock):
    class SlowAfter(BaseHook):
        priority = "HIGHEST"

        def after_train_iter(self):
            clock.advance(0.01)

    collect = Collect()
    hooks = [
        clock.drive(IterTimerHook()),
        EvalHook(by_epoch=False, interval=2),
        SlowAfter(),
        Slow(clock, val=0.02),
        collect,
    ]
    make_runner(tmp_path, *hooks, val_loader=batches(1)).train()
    assert {row["data_time"] for row in collect.seen} == {0.0}


def test_rates_and_phases_come_at_the_interval_and_fit_the_time(tmp_path, clock):
    collect = Collect()
    hooks = [clock.drive(IterTimerHook(interval=10)), Slow(clock), collect]
    make_runner(tmp_path, *hooks, train_loader=SlowLoader(clock, 20, 0.01), max_epochs=1).train()
    assert "time/iters_per_s" not in collect.seen[8]
    last = collect.seen[9]
    assert last["time/iters_per_s"] == pytest.approx(1 / 0.015)
    assert last["time/samples_per_s"] == pytest.approx(8 / 0.015)
    phases = {
        name: last[f"time/{name}"] for name in ("data", "forward", "backward", "optimizer", "hooks")
    }
    expected = {"data": 0.01, "forward": 0, "backward": 0, "optimizer": 0, "hooks": 0.005}
    assert phases == pytest.approx(expected)


@pytest.mark.parametrize("ignore", [False, True])
def test_the_warm_up_is_left_out_of_rates_and_on_request_of_time(tmp_path, clock, ignore):
    collect = Collect()
    timer = clock.drive(IterTimerHook(interval=10, ignore_warmup_time=ignore))
    slow = Slow(clock, first=0.05)
    make_runner(tmp_path, timer, slow, collect, train_loader=batches(10), max_epochs=1).train()
    assert collect.seen[-1]["time/iters_per_s"] == pytest.approx(1 / 0.005)
    assert ("time" in collect.seen[2]) is not ignore
    assert "time" in collect.seen[3]


def test_warmup_iter_says_how_many_iterations_that_is(tmp_path):
    collect = Collect()
    timer = IterTimerHook(warmup_iter=6, ignore_warmup_time=True)
    make_runner(tmp_path, timer, collect, train_loader=batches(8), max_epochs=1).train()
    assert ["time" in row for row in collect.seen] == [False] * 6 + [True] * 2


def test_the_eta_includes_the_validations_and_saves_to_come(tmp_path, clock):
    class SlowSave(BaseHook):
        def before_save_checkpoint(self):
            clock.advance(0.1)

    collect = Collect()
    hooks = [
        clock.drive(IterTimerHook(interval=5)),
        EvalHook(),
        CheckpointHook(),
        Slow(clock, val=0.2),
        SlowSave(),
        collect,
    ]
    loaders = {"train_loader": batches(10), "val_loader": batches(1)}
    make_runner(tmp_path, *hooks, **loaders, max_epochs=4).train()
    # In the middle of the second epoch 25 iterations, 3 validations and 3 saves are to come.
    assert collect.seen[14]["eta"] == pytest.approx(25 * 0.005 + 3 * (0.2 + 0.1))
    # Before the first validation and save their cost is unknown.
    assert collect.seen[4]["eta"] == pytest.approx(35 * 0.005)


def test_the_eta_can_be_left_out(tmp_path):
    collect = Collect()
    timer = IterTimerHook(interval=5, log_eta=False)
    make_runner(tmp_path, timer, collect, train_loader=batches(10), max_epochs=1).train()
    assert "eta" not in collect.seen[-1]
    assert "time/iters_per_s" in collect.seen[-1]


def test_the_end_of_training_logs_the_speed_without_the_time_of_hooks(tmp_path, caplog, clock):
    caplog.set_level(logging.INFO, "hookline")
    hooks = [clock.drive(IterTimerHook()), EvalHook(), Slow(clock, val=1.5)]
    loaders = {"train_loader": SlowLoader(clock, 20, 0.01), "val_loader": batches(1)}
    make_runner(tmp_path, *hooks, **loaders, max_epochs=1).train()
    (speed,) = [text for text in caplog.messages if text.startswith("Overall training speed")]
    (total,) = [text for text in caplog.messages if text.startswith("Total training time")]
    assert speed == "Overall training speed: 17 iterations in 0:00:00 (0.010000 s / it)"
    assert total == "Total training time: 0:00:01 (0:00:01 on hooks, validations and saves)"


def test_the_speed_stays_positive_if_hooks_take_long_in_the_timed_iterations(
    tmp_path, caplog, clock
):
    caplog.set_level(logging.INFO, "hookline")
    hooks = [clock.drive(IterTimerHook()), Slow(clock, first=2.0)]
    parts = {"train_loader": SlowLoader(clock, 20, 0.01), "max_epochs": 1}
    make_runner(tmp_path, *hooks, **parts).train()
    (speed,) = [text for text in caplog.messages if text.startswith("Overall training speed")]
    seconds = float(speed.partition("(")[2].split()[0])
    assert 0 < seconds <= 0.015


def test_a_run_that_had_nothing_left_to_do_logs_no_speed(tmp_path, caplog):
    make_runner(tmp_path, IterTimerHook(), CheckpointHook(), max_epochs=1).train()
    caplog.clear()
    caplog.set_level(logging.INFO, "hookline")
    make_runner(tmp_path, IterTimerHook(), CheckpointHook(), max_epochs=1, resume="auto").train()
    assert not [message for message in caplog.messages if "training speed" in message]


@pytest.mark.parametrize("wrong", [{"interval": 0}, {"warmup_iter": -1}])
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        IterTimerHook(**wrong)
