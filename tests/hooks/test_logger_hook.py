"""The log of a run: rows in log.jsonl, lines on the console, and no handlers left behind."""

from __future__ import annotations

import io
import itertools
import json
import logging

import pytest
import torch
from PIL import Image
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import LoggerHook
from tests.events.parts import PutEverything
from tests.helpers import batches
from tests.problems import logged, raises_problem


def run(folder, *hooks, **parts) -> Runner:
    torch.manual_seed(0)
    model = parts.pop("model", None) or nn.Linear(6, 3)
    parts = {
        "max_epochs": 2,
        "train_loader": batches(7),
        "val_loader": batches(1),
        "metrics": ["accuracy"],
        **parts,
    }
    parts.setdefault("optimizer", torch.optim.SGD(model.parameters(), lr=0.1))
    runner = Runner(
        model,
        loss_fn=nn.CrossEntropyLoss(),
        work_dir=folder,
        hooks=hooks,
        **parts,
    )
    runner.train()
    return runner


def rows(folder, mode="train"):
    return [
        row
        for line in (folder / "log.jsonl").read_text().splitlines()
        if (row := json.loads(line))["mode"] == mode
    ]


def without_clocks(row):
    return {
        key: value
        for key, value in row.items()
        if "time" not in key and key not in ("eta", "system/memory_mb")
    }


@pytest.mark.parametrize(
    "config, iterations",
    [
        ({"interval": 3}, [3, 6, 10, 13]),
        ({"interval": 3, "ignore_last": False}, [3, 6, 7, 10, 13, 14]),
        ({"interval": 5, "by_epoch": False}, [5, 10]),
        ({"interval": 5, "by_epoch": False, "ignore_last": False}, [5, 10, 14]),
        ({"interval": 50, "by_epoch": False}, [14]),
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


@pytest.mark.parametrize(
    "length, epoch", [({"max_epochs": 2}, 2), ({"max_iters": 10}, 2), ({"max_iters": 7}, 1)]
)
def test_an_evaluation_after_training_is_filed_under_the_epoch_that_the_weights_are_of(
    tmp_path, caplog, length, epoch
):
    caplog.set_level("INFO", "hookline")
    runner = run(tmp_path, **{"max_epochs": None, "test_loader": batches(1), **length})
    runner.test()
    runner.validate()
    (test,), last = rows(tmp_path, "test"), rows(tmp_path, "val")[-1]
    assert (
        (test["iter"], test["epoch"], test["step"])
        == (last["iter"], last["epoch"], last["step"])
        == (runner.iter, epoch, epoch)
    )
    assert [
        message.split("  ")[1] for message in caplog.messages if message.startswith("test")
    ] == [f"epoch {epoch}"]


def test_hooks_see_an_evaluation_after_training_in_the_epoch_that_its_own_was_in(tmp_path):
    class Look(BaseHook):
        def after_val_epoch(self, runner):
            seen.append((runner.epoch, runner.iter))

    seen: list[tuple[int, int]] = []
    runner = run(tmp_path, Look())
    assert (runner.epoch, runner.inner_iter) == (2, 0)
    runner.validate()
    assert seen == [(0, 7), (1, 14), (1, 14)]
    assert (runner.epoch, runner.inner_iter) == (2, 0)


@pytest.mark.parametrize("priority", ["HIGHEST", "NORMAL", "LOWEST"])
@pytest.mark.parametrize("order", ["nested", "flat"])
def test_what_a_hook_records_in_a_validation_is_on_its_line_and_nowhere_else(
    tmp_path, priority, order
):
    class Judge(BaseHook):
        def after_val_iter(self, runner):
            runner.events.put_scalar("hardest", torch.tensor(float(runner.batch_idx)))

        def after_val_epoch(self, runner):
            runner.events.put_scalar("worst", runner.epoch + 1.0)
            runner.metrics["wisdom"] = 7.0

    judge = Judge()
    judge.priority = priority
    runner = run(tmp_path, judge, hook_order=order, val_loader=batches(3), max_epochs=3)
    told = [
        (row["epoch"], row["worst"], row["hardest"], row["wisdom"]) for row in rows(tmp_path, "val")
    ]
    assert told == [(1, 1.0, 1.0, 7.0), (2, 2.0, 1.0, 7.0), (3, 3.0, 1.0, 7.0)]
    assert [row["iter"] for row in rows(tmp_path)] == [7, 14, 21]
    assert not any("worst" in row or "hardest" in row for row in rows(tmp_path))
    assert runner.events.latest()["worst"] == 3.0


def test_a_model_that_was_never_trained_is_evaluated_in_epoch_0(tmp_path):
    runner = Runner(
        nn.Linear(6, 3), test_loader=batches(1), loss_fn=nn.CrossEntropyLoss(), work_dir=tmp_path
    )
    runner.test()
    assert [(row["iter"], row["epoch"]) for row in rows(tmp_path, "test")] == [(0, 0)]


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
        [without_clocks(row) for mode in ("train", "val") for row in rows(folder, mode)]
        for folder in (tmp_path, straight.work_dir)
    )
    assert kept == expected


@pytest.mark.parametrize("schedule", ["CosineAnnealingLrUpdaterHook", "a scheduler of torch"])
def test_a_run_killed_between_its_last_checkpoint_and_its_end_has_the_last_row(tmp_path, schedule):
    class Break(BaseHook):
        priority = "LOWEST"  # First in `after_train`, before the last report.

        def after_train(self, runner):
            raise RuntimeError("broken")

    def train(folder, *hooks, **parts):
        torch.manual_seed(0)
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if schedule.endswith("Hook"):
            hooks = (*hooks, {"type": schedule, "min_lr": 0.0, "by_epoch": False})
        else:
            parts["scheduler"] = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        parts = {"model": model, "optimizer": optimizer, **parts}
        run(folder, LoggerHook(interval=4), *hooks, **parts)
        return [without_clocks(row) for mode in ("train", "val") for row in rows(folder, mode)]

    expected = train(tmp_path / "straight")
    with pytest.raises(RuntimeError):
        train(tmp_path / "killed", Break())
    for _ in range(2):  # The second one finds a finished run.
        assert train(tmp_path / "killed", resume="auto") == expected


def test_what_is_recorded_last_is_not_lost(tmp_path):
    class Late(BaseHook):
        def after_epoch(self, runner):
            runner.events.put_scalar("late/epoch", runner.epoch, smoothing_hint=False)

    run(tmp_path, Late())
    assert rows(tmp_path)[-1]["late/epoch"] == 1


def test_lines_go_to_the_users_own_logging_if_there_is_one(tmp_path, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="hookline"):
        run(tmp_path, LoggerHook(interval=7))
    assert [
        message for message in caplog.messages if message.startswith("train  epoch 1/2  7/7  loss ")
    ]
    assert "max_epochs=2" in caplog.text
    assert capsys.readouterr().out == ""


def test_a_run_by_iterations_on_a_stream_shows_its_progress_with_a_logger_of_the_user(
    tmp_path, caplog
):
    class Stream:
        def __iter__(self):
            return itertools.cycle(batches(3))

    with caplog.at_level(logging.INFO, logger="hookline"):
        parts = {"train_loader": Stream(), "max_epochs": None, "max_iters": 4}
        run(tmp_path, LoggerHook(interval=2), **parts)
    lines = [text.split("  ")[:2] for text in caplog.messages if text.startswith("train ")]
    assert lines == [["train", "iter 2/4"], ["train", "iter 4/4"]]


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


@pytest.mark.parametrize("has_handlers", [False, True])
@pytest.mark.parametrize("live", [False, True])
def test_the_users_level_is_obeyed_and_the_log_file_is_complete(
    tmp_path, capsys, monkeypatch, has_handlers, live
):
    logger, root = logging.getLogger("hookline"), logging.getLogger()
    stream = io.StringIO()
    monkeypatch.setattr(root, "handlers", [logging.StreamHandler(stream)] if has_handlers else [])
    monkeypatch.setattr("hookline.events.console.is_terminal", lambda stream: live)
    logger.setLevel(logging.WARNING)

    class Warn(BaseHook):
        def after_run(self, runner):
            runner.logger.warning("a warning")

    run(tmp_path, LoggerHook(interval=7), Warn(), hook_budget="100%")  # no warning of slow hooks
    shown = (stream.getvalue() + capsys.readouterr().out).splitlines()
    assert shown == ["a warning"]
    assert (logger.handlers, logger.level) == ([], logging.WARNING)
    text = (tmp_path / "hookline.log").read_text()
    for line in ("train  epoch 2/2  7/7  loss ", "val  epoch 2", "stopped: ", "a warning"):
        assert line in text


def test_a_terminal_keeps_one_training_report_of_each_epoch(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr("hookline.events.console.is_terminal", lambda stream: True)
    run(tmp_path, LoggerHook(interval=2))
    lines = [line for line in capsys.readouterr().out.splitlines() if " loss " in line]
    starts = [line[:20] for line in lines if line.startswith("train  ")]
    assert starts == ["train  epoch 1/2  6/", "train  epoch 2/2  6/"]


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
    (file,) = tmp_path.glob("*.log")
    assert "failed after 4 iterations" in file.read_text()
    assert "RuntimeError: broken" in file.read_text()


def test_an_interval_below_1_is_rejected():
    with raises_problem(component="LoggerHook", parameter="interval", value=0):
        LoggerHook(interval=0)


def test_not_a_number_is_written_as_text(tmp_path):
    class Spoil(BaseHook):
        def after_forward(self, runner):
            runner.outputs["loss"] = runner.outputs["loss"] * float("nan")

    run(
        tmp_path,
        LoggerHook(interval=7),
        Spoil(),
        max_epochs=1,
        drop_hooks=["CheckInvalidLossHook"],
    )
    assert rows(tmp_path)[0]["loss"] == "nan"


def test_means_over_other_spans_are_reported_under_names_of_ones_choice(tmp_path):
    losses = []

    class Collect(BaseHook):
        def after_forward(self, loss):
            losses.append(loss.item())

    means = {
        "loss_epoch": {"of": "loss", "over": "epoch"},
        "loss_run": {"of": "loss", "over": "global"},
        "loss": {"of": "loss", "over": 2},
    }
    run(tmp_path, LoggerHook(interval=7, means=means), Collect())
    last = rows(tmp_path)[-1]
    assert last["loss_epoch"] == pytest.approx(sum(losses[7:]) / 7)
    assert last["loss_run"] == pytest.approx(sum(losses) / 14)
    assert last["loss"] == pytest.approx(sum(losses[-2:]) / 2)


@pytest.mark.parametrize(
    "mean, path, nearest",
    [
        ({"off": "loss", "over": 3}, ("means", "x", "off"), "of"),
        ({"of": "loss"}, ("means", "x"), None),
        ({"of": "loss", "over": "epochs"}, ("means", "x", "over"), None),
    ],
)
def test_a_wrong_mean_is_rejected_at_once(mean, path, nearest):
    with raises_problem(component="LoggerHook", parameter="means", path=path, nearest=nearest):
        LoggerHook(means={"x": mean})


def test_an_interval_longer_than_what_is_kept_by_default_still_gives_its_whole_mean(tmp_path):
    losses = []

    class Collect(BaseHook):
        def after_forward(self, loss):
            losses.append(loss.item())

    run(
        tmp_path,
        LoggerHook(interval=300),
        Collect(),
        train_loader=batches(300, size=1),
        max_epochs=1,
        val_loader=None,
    )
    assert rows(tmp_path)[0]["loss"] == pytest.approx(sum(losses) / 300)


@pytest.mark.parametrize("order", ["nested", "flat"])
@pytest.mark.parametrize("priority", [0, 50, 100])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_report_has_the_values_of_its_iteration_whatever_the_order(
    tmp_path, order, priority, is_first
):
    class Count(BaseHook):
        def after_train_iter(self, runner):
            runner.events.put_iteration_scalar("count", runner.iter + 1, smoothed=False)

    hooks = [Count(priority=priority), LoggerHook(interval=5)]
    run(tmp_path, *(hooks if is_first else hooks[::-1]), hook_order=order)
    assert [(row["iter"], row["count"]) for row in rows(tmp_path)] == [(5, 5), (12, 12)]


def test_images_histograms_and_texts_are_kept_by_default(tmp_path):
    run(tmp_path, PutEverything())
    assert Image.open(tmp_path / rows(tmp_path, "image")[0]["path"]).size == (8, 8)
    assert sum(rows(tmp_path, "histogram")[0]["counts"]) == 100
    assert rows(tmp_path, "text")[0]["text"] == "a <b>note</b>"


def test_an_image_with_numbers_that_are_clipped_is_reported_once(tmp_path, caplog):
    class Normalized(BaseHook):
        def after_train_iter(self, events):
            events.put_image("normalized", torch.full((4, 4), -1.0))
            events.put_image("right", torch.ones(4, 4))

    run(tmp_path, Normalized())
    assert len(logged(caplog, "image")) == len(logged(caplog, "'normalized'")) == 1
    assert rows(tmp_path, "image")


def test_single_numbers_that_a_models_own_step_returns_are_reported_too(tmp_path):
    class Detector(nn.Linear):
        def train_step(self, batch):
            boxes = self(batch[0]).pow(2).mean()
            return {"loss": boxes * 2, "loss_boxes": boxes, "images": 8, "maps": torch.zeros(2)}

    model = Detector(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Runner(
        model, train_loader=batches(4), optimizer=optimizer, max_epochs=1, work_dir=tmp_path
    ).train()
    (row,) = rows(tmp_path)
    assert row["loss_boxes"] == pytest.approx(row["loss"] / 2)
    assert row["images"] == 8
    assert "maps" not in row


@pytest.mark.parametrize("order", ["nested", "flat"])
def test_several_hooks_that_report_count_each_loss_once_and_add_no_rows(tmp_path, order):
    alone = run(tmp_path / "alone", LoggerHook(interval=3), hook_order=order)
    others = [
        {"type": "PeriodicWriterHook", "writers": ["csv"], "period": 2},
        {"type": "PeriodicWriterHook", "writers": [], "period": 1},
    ]
    both = run(tmp_path / "both", LoggerHook(interval=3), *others, hook_order=order)
    one, two = ([without_clocks(row) for row in rows(runner.work_dir)] for runner in (alone, both))
    assert one == two
    assert [row["epoch"] for row in one] == [1, 1, 2, 2]


def test_log_files_are_copied_when_the_run_is_over(tmp_path):
    hook = {
        "type": "TextLoggerHook",
        "interval": 7,
        "out_dir": str(tmp_path / "kept"),
        "out_suffix": [".log.json", ".log"],
    }
    runner = run(tmp_path / "work", hook)
    assert {path.name for path in (tmp_path / "kept" / "work").iterdir()} == {
        "log.jsonl",
        "hookline.log",
    }
    assert (tmp_path / "kept" / "work" / "log.jsonl").read_text() == (
        tmp_path / "work" / "log.jsonl"
    ).read_text()
    assert [type(hook).__name__ for hook in runner.hooks if isinstance(hook, LoggerHook)] == [
        "TextLoggerHook"
    ]
    run(tmp_path / "other", {**hook, "out_suffix": ".log"})
    assert {path.name for path in (tmp_path / "kept" / "other").iterdir()} == {"hookline.log"}
