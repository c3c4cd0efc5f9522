"""TimeTrackingHook: times of epochs, and the prediction of the end."""

from __future__ import annotations

import logging
import re
import time
from datetime import datetime, timedelta

import pytest

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook, TimeTrackingHook
from tests.helpers import batches, make_runner


class Slow(BaseHook):
    """Makes each iteration take 10 ms."""

    def after_train_iter(self):
        time.sleep(0.01)


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_each_epoch_and_the_whole_training_get_a_line_in_log_and_file(tmp_path, caplog):
    caplog.set_level(logging.INFO, "hookline")
    make_runner(tmp_path, TimeTrackingHook(), max_epochs=3).train()
    written = lines(tmp_path / "time_tracking.log")
    beginnings = [re.search(r"epoch \d/3|training took", line).group() for line in written]
    assert beginnings == ["epoch 1/3", "epoch 2/3", "epoch 3/3", "training took"]
    assert len([message for message in caplog.messages if message.startswith("TimeTrackingHook: ")]) == 4
    assert "to go, done about" in written[0]
    assert "to go" not in written[2]


def test_with_a_frequency_only_every_so_many_epochs_are_reported(tmp_path):
    make_runner(tmp_path, TimeTrackingHook(frequency=2), max_epochs=5).train()
    assert re.findall(r"epoch (\d)/5", (tmp_path / "time_tracking.log").read_text()) == ["1", "3", "5"]


def test_the_file_lies_where_log_path_says_and_only_if_wanted(tmp_path):
    make_runner(tmp_path, TimeTrackingHook(log_path="times/epochs.log")).train()
    assert len(lines(tmp_path / "times/epochs.log")) == 3
    quiet = tmp_path / "quiet"
    make_runner(quiet, TimeTrackingHook(log_to_file=False)).train()
    assert not list(quiet.rglob("*.log"))


def test_the_prediction_is_the_pace_so_far_times_what_is_left(tmp_path):
    hook, seen = TimeTrackingHook(), []

    class Watch(BaseHook):
        priority = "HIGHEST"  # after the others

        def after_epoch(self, events):
            seen.append(events.latest())

    make_runner(tmp_path, hook, Slow(), Watch(), train_loader=batches(5), max_epochs=4).train()
    first, *_, last = seen
    assert 0.05 <= first["time/epoch"] <= first["time/elapsed"]
    assert first["time/remaining"] == pytest.approx(3 * first["time/elapsed"], rel=0.1)
    assert last["time/remaining"] == 0
    predicted = re.search(r"done about (.*)$", lines(tmp_path / "time_tracking.log")[0]).group(1)
    assert abs(datetime.now() - datetime.strptime(predicted, "%Y-%m-%d %H:%M:%S")) < timedelta(seconds=5)


def test_a_run_of_unknown_epoch_length_is_predicted_by_epochs(tmp_path):
    class Stream:
        def __iter__(self):
            return iter(batches(3))

    runner = make_runner(tmp_path, TimeTrackingHook(), train_loader=Stream(), max_epochs=2)
    runner.train()
    assert runner.max_iters is None
    assert "to go" in lines(tmp_path / "time_tracking.log")[0]


def test_time_trained_before_a_resume_is_counted(tmp_path):
    first = make_runner(tmp_path, TimeTrackingHook(), CheckpointHook(), Slow(), train_loader=batches(5), max_epochs=1)
    first.train()
    second = make_runner(tmp_path, TimeTrackingHook(), CheckpointHook(), train_loader=batches(5), max_epochs=2, resume="auto")
    second.train()
    latest = second.events.latest()
    assert latest["time/elapsed"] >= 0.05 + latest["time/epoch"]
    assert len(lines(tmp_path / "time_tracking.log")) == 4


@pytest.mark.parametrize("wrong", [{"frequency": 0}, {"log_path": ""}])
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TimeTrackingHook(**wrong)
