"""What a run says: rows in log.jsonl, lines for people, and nothing left behind."""

from __future__ import annotations

import json
import logging

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import LoggerHook
from tests.helpers import batches


def run(folder, *hooks, **parts) -> Runner:
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    parts = {"max_epochs": 2, "train_loader": batches(7), "val_loader": batches(1), "metrics": ["accuracy"], **parts}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    runner = Runner(model, optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), work_dir=folder, hooks=hooks, **parts)
    runner.train()
    return runner


def rows(folder, mode="train"):
    return [row for line in (folder / "log.jsonl").read_text().splitlines() if (row := json.loads(line))["mode"] == mode]


def without_clocks(row):
    return {key: value for key, value in row.items() if "time" not in key and key not in ("eta", "system/memory_mb")}


@pytest.mark.parametrize(
    "config, iterations",
    [
        ({"interval": 3}, [3, 6, 10, 13, 14]),
        ({"interval": 3, "ignore_last": False}, [3, 6, 7, 10, 13, 14]),
        ({"interval": 5, "by_epoch": False}, [5, 10, 14]),
        ({"interval": 50}, [7, 14]),
        ({"interval": 7}, [7, 14]),
    ],
)
def test_rows_come_at_the_interval_counted_within_the_epoch_or_not(tmp_path, config, iterations):
    run(tmp_path, {"type": "LoggerHook", **config})
    assert [row["iter"] for row in rows(tmp_path)] == iterations


def test_a_row_holds_the_mean_loss_of_its_interval_and_the_learning_rate(tmp_path):
    losses = []

    class Collect(BaseHook):
        def after_forward(self, loss):
            losses.append(loss.item())

    run(tmp_path, LoggerHook(interval=3), Collect())
    first, second = rows(tmp_path)[:2]
    assert first["loss"] == pytest.approx(sum(losses[:3]) / 3)
    assert second["loss"] == pytest.approx(sum(losses[3:6]) / 3)
    assert first["lr"] == 0.1
    assert {"time", "data_time", "wall_time"} <= set(first)


@pytest.mark.parametrize("by_epoch, steps", [(True, [1, 2]), (False, [7, 14])])
def test_validation_is_filed_under_its_epoch_or_its_iteration(tmp_path, by_epoch, steps):
    run(tmp_path, LoggerHook(log_metric_by_epoch=by_epoch))
    assert [row["step"] for row in rows(tmp_path, "val")] == steps
    assert all({"accuracy", "val_loss"} <= set(row) for row in rows(tmp_path, "val"))


def test_after_a_resume_there_are_no_double_points(tmp_path):
    class Break(BaseHook):
        def after_forward(self, runner):
            if runner.iter == 12:
                raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        run(tmp_path, LoggerHook(interval=2), Break())
    assert [row["iter"] for row in rows(tmp_path)] == [2, 4, 6, 9, 11]
    run(tmp_path, LoggerHook(interval=2), resume="auto")
    straight = run(tmp_path / "straight", LoggerHook(interval=2))
    kept, expected = (
        [without_clocks(row) for mode in ("train", "val") for row in rows(folder, mode)] for folder in (tmp_path, straight.work_dir)
    )
    assert kept == expected


def test_what_is_recorded_last_is_not_lost(tmp_path):
    class Late(BaseHook):
        def after_epoch(self, runner):
            runner.events.put_scalar("late/epoch", runner.epoch, smoothing_hint=False)

    run(tmp_path, Late())
    assert rows(tmp_path)[-1]["late/epoch"] == 1


def test_lines_go_to_the_users_own_logging_if_there_is_one(tmp_path, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="hookline"):
        run(tmp_path, LoggerHook(interval=7))
    assert [message for message in caplog.messages if message.startswith("train  epoch 1/2  7/7  loss ")]
    assert "stopped: reached max_epochs=2" in caplog.text
    assert capsys.readouterr().out == ""


def test_without_logging_lines_are_printed_and_the_logger_is_left_as_it_was(tmp_path, capsys):
    logger, root = logging.getLogger("hookline"), logging.getLogger()
    handlers, root.handlers = root.handlers, []
    try:
        run(tmp_path, LoggerHook(interval=7))
    finally:
        root.handlers = handlers
    assert "train  epoch 2/2  7/7  loss " in capsys.readouterr().out
    assert (logger.handlers, logger.level) == ([], logging.NOTSET)
    assert "stopped: reached max_epochs=2" in (tmp_path / "hookline.log").read_text()


def test_loggers_are_closed_after_a_failure_and_no_row_is_lost(tmp_path):
    class Break(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 4:
                raise RuntimeError("broken")

    hook = LoggerHook(interval=2)
    with pytest.raises(RuntimeError):
        run(tmp_path, hook, Break())
    assert [row["iter"] for row in rows(tmp_path)] == [2, 4]
    assert hook._writers == []
    assert logging.getLogger("hookline").handlers == []


def test_not_a_number_is_written_as_text(tmp_path):
    class Spoil(BaseHook):
        def after_forward(self, runner):
            runner.outputs["loss"] = runner.outputs["loss"] * float("nan")

    run(tmp_path, LoggerHook(interval=7), Spoil(), max_epochs=1)
    assert rows(tmp_path)[0]["loss"] == "nan"
