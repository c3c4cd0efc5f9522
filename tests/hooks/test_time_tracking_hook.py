"""TimeTrackingHook: times of epochs, and the prediction of the end."""

from __future__ import annotations

import logging
import re
from datetime import datetime, timedelta

import pytest

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook, TimeTrackingHook
from tests.clock import FakeClock
from tests.helpers import batches, make_runner


class Slow(BaseHook):
    """A hook that takes 10 s in each iteration."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def after_train_iter(self):
        self.clock.advance(10.0)


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_each_epoch_and_the_whole_training_get_a_line_in_log_and_file(tmp_path, caplog, clock):
    caplog.set_level(logging.INFO, "hookline")
    make_runner(tmp_path, clock.drive(TimeTrackingHook()), Slow(clock), max_epochs=3).train()
    written = lines(tmp_path / "time_tracking.log")
    beginnings = [re.search(r"epoch \d/3|training took", line).group() for line in written]
    assert beginnings == ["epoch 1/3", "epoch 2/3", "epoch 3/3", "training took"]
    assert (
        len([message for message in caplog.messages if message.startswith("TimeTrackingHook: ")])
        == 4
    )
    assert "to go, done about" in written[0]
    assert "to go" not in written[2]


def test_with_a_frequency_only_every_so_many_epochs_are_reported(tmp_path):
    make_runner(tmp_path, TimeTrackingHook(frequency=2), max_epochs=5).train()
    assert re.findall(r"epoch (\d)/5", (tmp_path / "time_tracking.log").read_text()) == [
        "1",
        "3",
        "5",
    ]


def test_the_file_lies_where_log_path_says_and_only_if_wanted(tmp_path):
    make_runner(tmp_path, TimeTrackingHook(log_path="times/epochs.log")).train()
    assert len(lines(tmp_path / "times/epochs.log")) == 3
    quiet = tmp_path / "quiet"
    make_runner(quiet, TimeTrackingHook(log_to_file=False)).train()
    assert not list(quiet.rglob("*.log"))


def test_the_estimate_is_the_pace_so_far_times_the_iterations_left(tmp_path, clock):
    seen = []

    class Collect(BaseHook):
        priority = "HIGHEST"  # Runs after the other hooks.

        def after_epoch(self, events):
            seen.append(events.latest())

    hooks = [clock.drive(TimeTrackingHook()), Slow(clock), Collect()]
    make_runner(tmp_path, *hooks, train_loader=batches(5), max_epochs=4).train()
    assert [row["time/epoch"] for row in seen] == pytest.approx([50] * 4)
    assert [row["time/elapsed"] for row in seen] == pytest.approx([50, 100, 150, 200])
    assert [row["time/remaining"] for row in seen] == pytest.approx([150, 100, 50, 0])
    first = lines(tmp_path / "time_tracking.log")[0]
    written, predicted = re.fullmatch(
        r"(\S+ \S+) epoch 1/4 .* done about (\S+ \S+)", first
    ).groups()
    assert date(predicted) - date(written) == timedelta(seconds=150)


def date(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")


def test_a_run_of_unknown_epoch_length_is_estimated_by_epochs(tmp_path, clock):
    class Stream:
        def __iter__(self):
            return iter(batches(3))

    hooks = [clock.drive(TimeTrackingHook()), Slow(clock)]
    runner = make_runner(tmp_path, *hooks, train_loader=Stream(), max_epochs=2)
    runner.train()
    assert runner.max_iters is None
    assert "30.0 s to go" in lines(tmp_path / "time_tracking.log")[0]


def test_time_trained_before_a_resume_is_counted(tmp_path, clock):
    for epochs, resume in ((1, None), (2, "auto")):
        hooks = [clock.drive(TimeTrackingHook()), CheckpointHook(), Slow(clock)]
        runner = make_runner(
            tmp_path, *hooks, train_loader=batches(5), max_epochs=epochs, resume=resume
        )
        runner.train()
        clock.advance(1000.0)  # Between the two runs; it must not be counted.
    latest = runner.events.latest()
    assert latest["time/epoch"] == pytest.approx(50)
    assert latest["time/elapsed"] == pytest.approx(100)
    assert len(lines(tmp_path / "time_tracking.log")) == 4


@pytest.mark.parametrize("wrong", [{"frequency": 0}, {"log_path": ""}])
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TimeTrackingHook(**wrong)
