"""The progress bar, drawn into a file."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from hookline.events.bar import ProgressBar


@pytest.mark.parametrize(
    ("epoch", "max_epochs", "shown"),
    [(0, 2, "epoch 1/2"), (1, 2, "epoch 2/2"), (2, 2, "epoch 2/2"), (4, None, "epoch 5")],
)
def test_the_bar_names_the_epoch_and_none_after_the_last(epoch, max_epochs, shown):
    bar = ProgressBar(SimpleNamespace(iter=5, epoch=epoch, max_epochs=max_epochs, max_iters=10))
    list(bar.get_renderables())
    bar.stop()
    assert [task.description for task in bar.tasks] == [shown]


def test_the_bar_keeps_counters_and_remaining_time_in_80_columns_whatever_is_added():
    run = SimpleNamespace(iter=1234, epoch=3, max_epochs=100, max_iters=56789)
    bar = ProgressBar(run)
    bar.show({"loss": 1.2345, "time": 0.002, **{f"scalar_{number}": 0.5 for number in range(9)}})
    bar.show({"late": 1.0})
    console = Console(width=80, file=io.StringIO())
    console.print(bar.make_tasks_table(bar.tasks))
    list(bar.get_renderables())
    console.print(bar.make_tasks_table(bar.tasks))
    bar.stop()
    line = console.file.getvalue().splitlines()[-1]
    assert len(line) <= 80
    for part in ("epoch 4/100", "1234/56789", "500 it/s", ":", "loss 1.2345", "…"):
        assert part in line
