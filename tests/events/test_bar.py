"""The lines of progress on a terminal, drawn into a file."""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest
from rich.console import Console

from hookline.events.bar import LineHandler, ProgressBar

ESCAPE = "\x1b["


def counters(**changed):
    known = {"iter": 5, "epoch": 0, "max_epochs": 2, "max_iters": 10, "mode": "train"}
    return SimpleNamespace(**{**known, **changed})


def drawn(bar: ProgressBar, width: int = 80) -> list[str]:
    """Return the lines of the bar as plain text."""
    console = Console(width=width, file=io.StringIO())
    list(bar.get_renderables())
    console.print(bar.make_tasks_table(bar.tasks))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("epoch", "max_epochs", "shown"),
    [(0, 2, "epoch 1/2"), (1, 2, "epoch 2/2"), (2, 2, "epoch 2/2"), (4, None, "epoch 5")],
)
def test_the_bar_names_the_epoch_and_none_after_the_last(epoch, max_epochs, shown):
    bar = ProgressBar(counters(epoch=epoch, max_epochs=max_epochs))
    (line,) = drawn(bar)
    bar.stop()
    assert line.startswith(f"train {shown} ")


def test_the_bar_keeps_counters_and_remaining_time_in_80_columns_whatever_is_added():
    bar = ProgressBar(counters(iter=1234, epoch=3, max_epochs=100, max_iters=56789))
    bar.show({"loss": 1.2345, "time": 0.002, **{f"scalar_{number}": 0.5 for number in range(9)}})
    bar.show({"late": 1.0})
    drawn(bar)
    (line,) = drawn(bar)
    bar.stop()
    assert len(line) <= 80
    for part in ("epoch 4/100", "1234/56789", "500 it/s", ":", "loss 1.2345", "…"):
        assert part in line


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.002, "500 it/s"), (1.0, "1 it/s"), (2.5, "2.5 s/it")]
)
def test_the_rate_is_readable_for_fast_and_slow_iterations(seconds, shown):
    bar = ProgressBar(counters())
    bar.show({"time": seconds})
    (line,) = drawn(bar)
    bar.stop()
    assert shown in line


@pytest.mark.parametrize("width", [80, 120])
def test_training_and_validation_have_a_line_each_with_aligned_scalars(width):
    bar = ProgressBar(counters())
    bar.show({"loss": 0.5, "time": 0.01})
    assert len(drawn(bar, width)) == 1
    bar.begin_evaluation("val", 4)
    bar.advance_evaluation()
    train, val = drawn(bar, width)
    assert (train.split()[0], val.split()[0]) == ("train", "val")
    assert "5/10" in train
    assert "1/4" in val
    for _ in range(3):
        bar.advance_evaluation()
    bar.add_row("val", {"accuracy": 0.75}, iter=5, epoch=1)
    train, val = drawn(bar, width)
    bar.stop()
    assert "4/4" in val
    assert train.index("loss 0.5000") == val.index("accuracy 0.7500")
    assert max(len(train), len(val)) <= width


def test_the_next_validation_begins_without_the_results_of_the_last_one():
    bar = ProgressBar(counters())
    bar.begin_evaluation("val", 2)
    bar.add_row("val", {"accuracy": 0.75}, iter=5, epoch=1)
    bar.begin_evaluation("val", 2)
    _, val = drawn(bar)
    bar.stop()
    assert "0/2" in val
    assert "accuracy" not in val


def test_an_evaluation_apart_from_training_has_only_its_own_line():
    bar = ProgressBar(counters(mode="test"))
    bar.show({"loss": 0.5})
    bar.begin_evaluation("test", None)
    bar.advance_evaluation()
    (line,) = drawn(bar)
    bar.stop()
    assert line.startswith("test ")
    assert "1/?" in line
    assert "epoch" not in line


@pytest.mark.parametrize("has_color", [True, False])
def test_no_color_is_respected(has_color, monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    if not has_color:
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    handler = LineHandler(console=console, show_time=False, show_level=False, show_path=False)
    for level, text in ((logging.WARNING, "careful"), (logging.ERROR, "broken")):
        handler.handle(logging.LogRecord("hookline", level, __file__, 1, text, (), None))
    record = logging.LogRecord("hookline", logging.INFO, __file__, 1, "val  epoch 1", (), None)
    record.is_progress = True
    handler.handle(record)
    text = console.file.getvalue()
    assert "careful" in text
    assert (ESCAPE in text) is has_color
