"""IterTimerHook: times, rates, the prediction of the end, and the closing lines."""

from __future__ import annotations

import logging
import re
import time
from statistics import median

import pytest

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook, EvalHook, IterTimerHook
from tests.helpers import batches, make_runner


class Slow(BaseHook):
    """Makes iterations take 5 ms, and the first ones longer."""

    def __init__(self, first: float = 0.0, val: float = 0.0) -> None:
        self.first, self.val = first, val

    def before_train_iter(self, runner):
        time.sleep(0.005 + (self.first if runner.iter < 3 else 0.0))

    def before_val_epoch(self):
        time.sleep(self.val)


class Collect(BaseHook):
    priority = "HIGHEST"  # after the others

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []

    def after_train_iter(self, events):
        self.seen.append(events.latest())


def test_every_iteration_has_its_time_and_the_time_it_waited_for_its_batch(tmp_path):
    class Loader:
        def __len__(self):
            return 5

        def __iter__(self):
            for batch in batches(5):
                time.sleep(0.01)
                yield batch

    collect = Collect()
    make_runner(tmp_path, IterTimerHook(), Slow(), collect, train_loader=Loader(), max_epochs=1).train()
    assert all(0.01 <= row["data_time"] <= row["time"] - 0.005 for row in collect.seen)


@pytest.mark.parametrize(("frequency", "expected"), [(None, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4])])
def test_times_belong_to_the_iterations_and_epochs_that_they_are_of(tmp_path, frequency, expected):
    hook = IterTimerHook()
    hook.frequency = frequency or hook.frequency
    runner = make_runner(tmp_path, hook, train_loader=batches(3), max_epochs=2)
    before = time.time()
    runner.train()
    times = runner.events.history("time")
    assert [(scalar.iter, scalar.epoch) for scalar in times] == [(number, number // 3) for number in expected]
    assert before <= times[0].time <= times[-1].time <= time.time()
    assert [scalar.iter for scalar in runner.events.history("data_time")] == expected


def test_waiting_for_data_is_neither_other_hooks_nor_validation(tmp_path):
    class SlowAfter(BaseHook):
        priority = "HIGHEST"

        def after_train_iter(self):
            time.sleep(0.01)

    collect = Collect()
    hooks = [IterTimerHook(), EvalHook(by_epoch=False, interval=2), SlowAfter(), Slow(val=0.02), collect]
    make_runner(tmp_path, *hooks, val_loader=batches(1)).train()
    assert median(row["data_time"] for row in collect.seen) < 0.005


def test_rates_and_phases_come_at_the_interval_and_fit_the_time(tmp_path):
    collect = Collect()
    make_runner(tmp_path, IterTimerHook(interval=10), Slow(), collect, train_loader=batches(20, size=8), max_epochs=1).train()
    assert "time/iters_per_s" not in collect.seen[8]
    last = collect.seen[9]
    mean = sum(row["time"] for row in collect.seen[3:10]) / 7
    assert last["time/iters_per_s"] == pytest.approx(1 / mean)
    assert last["time/samples_per_s"] == pytest.approx(8 / mean)
    phases = [last[f"time/{name}"] for name in ("data", "forward", "backward", "optimizer", "hooks")]
    assert last["time/hooks"] >= 0.005
    timed = sum(row["time"] for row in collect.seen[2:8]) / 6
    assert sum(phases) == pytest.approx(timed, rel=0.2)  # `time` runs from timer to timer, phases from batch to batch


def test_the_warm_up_is_left_out_of_rates_and_on_request_of_time(tmp_path):
    rates = {}
    for ignore in (False, True):
        collect = Collect()
        timer = IterTimerHook(interval=10, ignore_warmup_time=ignore)
        make_runner(tmp_path, timer, Slow(first=0.05), collect, train_loader=batches(10), max_epochs=1).train()
        rates[ignore] = collect.seen[-1]["time/iters_per_s"]
        assert ("time" in collect.seen[2]) is not ignore
        assert "time" in collect.seen[3]
    assert min(rates.values()) > 1 / 0.05


def test_warmup_iter_says_how_many_iterations_that_is(tmp_path):
    collect = Collect()
    timer = IterTimerHook(warmup_iter=6, ignore_warmup_time=True)
    make_runner(tmp_path, timer, collect, train_loader=batches(8), max_epochs=1).train()
    assert ["time" in row for row in collect.seen] == [False] * 6 + [True] * 2


def test_the_prediction_knows_the_validations_and_saves_to_come(tmp_path):
    class Note(BaseHook):
        def after_train_iter(self, runner):
            moments.append(time.perf_counter())

    moments: list[float] = []
    collect = Collect()
    hooks = [IterTimerHook(interval=5), EvalHook(), CheckpointHook(), Slow(val=0.2), collect, Note()]
    make_runner(tmp_path, *hooks, train_loader=batches(10), val_loader=batches(1), max_epochs=4).train()
    left = time.perf_counter() - moments[14]
    predicted = collect.seen[14]["eta"]  # in the middle of the second of four epochs
    assert 3 * 0.2 < predicted < 2 * left  # three validations are still to come
    assert collect.seen[4]["eta"] < predicted  # nothing was known of them before the first


def test_the_prediction_can_be_left_out(tmp_path):
    collect = Collect()
    make_runner(tmp_path, IterTimerHook(interval=5, log_eta=False), collect, train_loader=batches(10), max_epochs=1).train()
    assert "eta" not in collect.seen[-1]
    assert "time/iters_per_s" in collect.seen[-1]


def test_the_end_of_training_says_how_fast_it_was(tmp_path, caplog):
    caplog.set_level(logging.INFO, "hookline")
    hooks = [IterTimerHook(), EvalHook(), Slow(val=1.0)]
    make_runner(tmp_path, *hooks, train_loader=batches(20), val_loader=batches(1), max_epochs=1).train()
    (speed,) = [message for message in caplog.messages if message.startswith("Overall training speed")]
    (total,) = [message for message in caplog.messages if message.startswith("Total training time")]
    found = re.fullmatch(r"Overall training speed: 17 iterations in 0:00:00 \((\d\.\d{6}) s / it\)", speed)
    assert found
    assert float(found[1]) < 0.005  # a hook's sleep is no training
    assert re.fullmatch(r"Total training time: 0:00:0[1-9] \(0:00:0[1-9] on hooks, validations and saves\)", total)


def test_a_run_that_had_nothing_left_to_do_says_nothing(tmp_path, caplog):
    make_runner(tmp_path, IterTimerHook(), CheckpointHook(), max_epochs=1).train()
    caplog.clear()
    caplog.set_level(logging.INFO, "hookline")
    make_runner(tmp_path, IterTimerHook(), CheckpointHook(), max_epochs=1, resume="auto").train()
    assert not [message for message in caplog.messages if "training speed" in message]


@pytest.mark.parametrize("wrong", [{"interval": 0}, {"warmup_iter": -1}])
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        IterTimerHook(**wrong)
