"""The table of costs: in the log, in the work directory, and the budget that it is held against."""

from __future__ import annotations

import json
import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, EMAHook, get_default_hooks
from hookline.profiling.cost_report import (
    COSTS_FILE,
    cost_table,
    format_seconds,
    format_table,
    parse_percentage,
)
from tests.clock import FakeClock, SlowLoader
from tests.helpers import batches, make_runner


class Slow(BaseHook):
    """A hook that takes 2 ms in each iteration and 20 ms after each epoch."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def after_train_iter(self):
        self.clock.advance(0.002)

    def after_epoch(self):
        self.clock.advance(0.02)


def test_the_end_of_a_run_prints_the_table(tmp_path, caplog, clock):
    caplog.set_level(logging.INFO, "hookline")
    make_runner(tmp_path, Slow(clock), train_loader=batches(10)).train()
    (table,) = [message for message in caplog.messages if message.startswith("an iteration took")]
    first, *rows = table.splitlines()
    assert "(timed in 6 of 20)" in first
    assert all(phase in first for phase in ("data", "forward", "backward", "optimizer", "hooks"))
    assert set(rows[:2]) == {
        "  Slow at after_train_iter: 2.00 ms a call, 50.0% of the run",
        "  Slow at after_epoch: 20.00 ms a call, 50.0% of the run",
    }


def test_the_costs_of_a_short_run_fit_on_six_lines(tmp_path, caplog, clock):
    caplog.set_level(logging.INFO, "hookline")
    runner = make_runner(
        tmp_path,
        *get_default_hooks(without=["OptimizerHook"]),
        EMAHook(),
        Slow(clock),
        train_loader=batches(10),
        val_loader=batches(1),
    )
    runner.train()
    (table,) = [message for message in caplog.messages if message.startswith("an iteration took")]
    lines = table.splitlines()
    assert len(lines) <= 6
    assert re.match(r"  validate: 2 times .* of the run; save: 2 times .* of the run", lines[1])
    rows = json.loads((tmp_path / COSTS_FILE).read_text())["hooks"]
    named = [line for line in lines if " at " in line]
    share = sum(row["share"] for row in rows[len(named) :])
    assert lines[-1] == f"  {len(rows) - len(named)} other hooks: {share:.1%} of the run"


def test_hooks_that_took_seconds_are_all_named(tmp_path):
    table = cost_table(make_runner(tmp_path, train_loader=batches(10)).train())
    rows = [
        {**table["hooks"][0], "hook": f"Hook{number}", "seconds": 2.0, "share": 0.1}
        for number in range(5)
    ]
    small = {**rows[0], "seconds": 2.0, "share": 0.002}
    text = format_table({**table, "hooks": [*rows, small]})
    assert [f"Hook{number} at" in text for number in range(5)] == [True] * 5
    assert text.endswith("  1 other hook: 0.2% of the run")


def test_the_file_holds_every_hook_and_site(tmp_path, clock):
    runner = make_runner(tmp_path, Slow(clock), CheckpointHook(), train_loader=batches(10))
    runner.train()
    table = json.loads((tmp_path / COSTS_FILE).read_text())
    rows = {(row["hook"], row["site"]): row for row in table["hooks"]}
    assert rows["Slow", "after_epoch"]["timed_calls"] == 2
    assert rows["Slow", "after_epoch"]["seconds"] == pytest.approx(2 * 0.02)
    assert rows["Slow", "after_train_iter"]["timed_calls"] == table["timed_iterations"] == 6
    # The seconds of all iterations, not only of the timed ones.
    assert rows["Slow", "after_train_iter"]["seconds"] == pytest.approx(20 * 0.002)
    assert table["iterations"] == 20
    assert sum(table["phases"].values()) == pytest.approx(table["seconds_per_iteration"])
    assert set(table["seams"]) == {"save"}
    assert format_table(table)


def test_a_run_that_keeps_nothing_leaves_nothing(tmp_path):
    make_runner(tmp_path / "none", train_loader=batches(10)).train()
    assert not (tmp_path / "none").exists()


def test_a_run_too_short_to_time_logs_no_table(tmp_path, caplog):
    caplog.set_level(logging.INFO, "hookline")
    runner = make_runner(tmp_path, max_iters=2)
    runner.train()
    assert not caplog.messages
    assert cost_table(runner)["phases"] == {}


def test_a_hook_that_is_slow_between_iterations_is_named_at_the_end(tmp_path, caplog, clock):
    class Slowly(BaseHook):
        def after_train_epoch(self):
            clock.advance(1.1)

    loader = SlowLoader(clock, 8, 0.01)
    make_runner(tmp_path, Slowly(), train_loader=loader, max_epochs=1).train()
    (message,) = [message for message in caplog.messages if "hook_budget" in message]
    assert message.startswith("Slowly at after_train_epoch took 1.1 s")


@pytest.mark.parametrize(
    "given_, share", [("5%", 0.05), (0.05, 0.05), ("0.5 %", 0.005), (1, 1.0), ("100%", 1.0)]
)
def test_a_budget_is_a_share(given_, share):
    assert parse_percentage(given_) == pytest.approx(share)


@pytest.mark.parametrize("wrong", ["5", "x%", 0, -0.1, 1.5, "200%", True, "nan", ""])
def test_anything_else_is_refused(wrong, tmp_path):
    with pytest.raises(ConfigError) as raised:
        make_runner(tmp_path, hook_budget=wrong)
    assert (raised.value.parameter, raised.value.value) == ("hook_budget", wrong)


@given(st.floats(0.001, 100))
def test_percent_and_number_mean_the_same(percent):
    assert parse_percentage(f"{percent}%") == pytest.approx(parse_percentage(percent / 100))


@pytest.mark.parametrize(
    "seconds, text", [(12.34, "12.3 s"), (0.00502, "5.02 ms"), (1.23e-5, "12.3 µs")]
)
def test_times_are_readable(seconds, text):
    assert format_seconds(seconds) == text


def test_the_costs_of_a_resumed_run_are_those_of_the_whole_run(tmp_path, clock):
    def run(epochs):
        hooks = (CheckpointHook(), Slow(clock))
        parts = {"train_loader": batches(10), "max_epochs": epochs, "resume": "auto"}
        make_runner(tmp_path, *hooks, **parts).train()
        return json.loads((tmp_path / COSTS_FILE).read_text())

    first, whole = run(1), run(3)
    assert first["iterations"] == 10
    assert whole["iterations"] == 30
    assert whole["seconds"] == pytest.approx(30 * 0.002 + 3 * 0.02)
    rows = {(row["hook"], row["site"]): row for row in whole["hooks"]}
    assert rows["Slow", "after_epoch"]["timed_calls"] == 3
    assert rows["Slow", "after_epoch"]["seconds_per_call"] == pytest.approx(0.02)
    assert rows["Slow", "after_train_iter"]["seconds"] == pytest.approx(0.06)
    assert sum(row["share"] for row in whole["hooks"]) == pytest.approx(1)


def test_a_damaged_file_of_costs_is_ignored_by_a_resumed_run(tmp_path):
    parts = {"train_loader": batches(10), "resume": "auto"}
    make_runner(tmp_path, CheckpointHook(), max_epochs=1, **parts).train()
    (tmp_path / COSTS_FILE).write_text('{"seconds": "long"}')
    make_runner(tmp_path, CheckpointHook(), max_epochs=2, **parts).train()
    assert json.loads((tmp_path / COSTS_FILE).read_text())["iterations"] == 10


def test_costs_are_at_most_the_time_of_the_run_if_only_its_samples_were_slow(tmp_path, clock):
    class SlowAtFirst(BaseHook):
        def after_train_iter(self, runner):
            clock.advance(1.0 if runner.iter < 8 else 0.001)

    make_runner(tmp_path, SlowAtFirst(), train_loader=batches(30), max_epochs=1).train()
    table = json.loads((tmp_path / COSTS_FILE).read_text())
    assert table["seconds"] == pytest.approx(8.022)
    assert 0.9 < sum(row["share"] for row in table["hooks"]) <= 1
