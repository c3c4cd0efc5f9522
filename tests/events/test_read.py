"""Curves read back from logs, and as text."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.errors import HooklineError
from hookline.events import Row
from hookline.events.chart import text_chart
from hookline.events.jsonl import JSONLinesWriter
from hookline.events.read import matching, read_curves
from hookline.hooks import LoggerHook
from tests.helpers import batches, small_model
from tests.problems import raises_problem


def test_curves_come_back_as_they_were_written(tmp_path):
    writer = JSONLinesWriter(tmp_path / "log.jsonl")
    writer.write_scalars("train", {"loss": 1.0, "system/cpu": 5.0}, iter=10, epoch=1)
    writer.write_scalars("train", {"loss": float("nan")}, iter=20, epoch=1)
    writer.write_row(Row("val", {"accuracy": 0.5, "val_loss": 2.0}, 20, 1, step=1, time=0.0))
    writer.write_row(Row("train", {"rare": 0.5, "step": 9.0}, 20, 1, step=7, time=0.0))
    writer.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"mode": "train", "iter": 30, "lo')
    assert read_curves(tmp_path) == {
        "train/loss": [(10, 1.0)],
        "system/cpu": [(10, 5.0)],
        "val/accuracy": [(1, 0.5)],
        "val/loss": [(1, 2.0)],
        "train/rare": [(7, 0.5)],
        "train/step": [(7, 9.0)],
    }
    assert read_curves(tmp_path / "log.jsonl") == read_curves(tmp_path)


@pytest.mark.parametrize(
    "metric, found",
    [
        ("loss", ["train/loss", "val/loss"]),
        ("val_loss", ["val/loss"]),
        ("val/loss", ["val/loss"]),
        ("accuracy", ["val/accuracy"]),
        ("acc", []),
    ],
)
def test_a_metric_goes_by_several_names(metric, found):
    assert matching(metric, ["train/loss", "val/loss", "val/accuracy"]) == found


def test_a_folder_without_a_log_is_an_error(tmp_path):
    with raises_problem(HooklineError, file=str(tmp_path)):
        read_curves(tmp_path)


def test_a_chart_has_its_ends_at_the_corners():
    lines = text_chart(
        {"up": [(0, 0.0), (10, 1.0)], "flat": [(0, 0.5)]}, width=11, height=5
    ).splitlines()
    assert lines[0] == "1 │          ●"
    assert lines[2] == "  │○"
    assert lines[4] == "0 │●"
    assert lines[6] == "   0        10"
    assert lines[7:] == ["   ● up", "   ○ flat"]


def test_charts_of_one_point_and_of_none():
    assert "●" in text_chart({"one": [(5, 2.0)]})
    assert text_chart({}) == "nothing to draw"


def test_the_history_of_a_runner_has_all_scalars_of_all_its_parts(tmp_path):
    def part(**length):
        model = small_model()
        return Runner(
            model,
            train_loader=batches(4),
            val_loader=batches(1),
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            loss_fn=nn.CrossEntropyLoss(),
            hooks=[LoggerHook(interval=2)],
            work_dir=tmp_path,
            resume="auto",
            **length,
        )

    part(max_epochs=1).train()
    history = part(max_epochs=2).train().history
    assert "train/loss" in repr(history)
    losses = history.curves()["train/loss"]
    assert [iteration for iteration, _ in losses] == [2, 4, 6, 8]
    table = history.to_pandas()
    assert list(table[table["mode"] == "train"]["loss"].dropna()) == [loss for _, loss in losses]
    assert list(table[table["mode"] == "val"]["epoch"]) == [1, 2]
