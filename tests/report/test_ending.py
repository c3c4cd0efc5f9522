"""The lines at the end of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.report.ending import (
    MAX_BEST,
    SEAMS,
    TEXT_WIDTH,
    align_rows,
    describe_end,
    describe_stop,
)
from tests.helpers import batches, make_runner, small_model

MAX_LINES = 10  # with the line of `stopped` and the command that follows


def train(folder: Path, *hooks: Any, **parts: Any) -> Runner:
    model = small_model()
    return Runner(
        model,
        train_loader=batches(),
        val_loader=batches(2),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        work_dir=folder,
        hooks=hooks,
        **{"max_epochs": 2, **parts},
    ).train()


def test_the_rows_have_speed_results_and_files(tmp_path: Path) -> None:
    runner = train(tmp_path)
    rows = dict(describe_end(runner))
    assert "waiting for data" in rows["speed"]
    assert rows["last"].startswith("accuracy ")
    assert "in epoch" in rows["best"]
    assert "last.pth" in rows["checkpoints"]
    assert rows["report"] == str(tmp_path / "report.html")
    assert rows["files"] == f"{tmp_path}/"


def test_facts_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    runner = make_runner(tmp_path / "none")
    assert describe_end(runner) == []


def test_there_are_at_most_ten_lines_whatever_was_measured(tmp_path: Path) -> None:
    def measure(model: nn.Module, loader: Any) -> dict[str, float]:
        return {f"accuracy_{number}": 0.5 for number in range(12)}

    tracked = [f"accuracy_{number}" for number in range(4)]
    hooks = [
        {"type": "EvalHook", "test_fn": measure, "metric": tracked[0]},
        {"type": "CheckpointHook", "save_best": tracked},
    ]
    runner = train(tmp_path, *hooks, max_epochs=8)
    for name in SEAMS:  # as if they had taken long
        runner.sites.costs.seams[name].total = runner.sites.costs.seconds()
    rows = describe_end(runner)
    labels = [label for label, _ in rows]
    assert len(rows) + 2 <= MAX_LINES
    assert labels.count("best") == MAX_BEST
    assert dict(rows)["overhead"].count("of the run") == len(SEAMS)
    for label in ("last", "checkpoints", "overhead"):
        assert len(dict(rows)[label]) <= TEXT_WIDTH
    assert dict(rows)["last"].endswith(" more")
    assert dict(rows)["checkpoints"].startswith("last.pth, best_accuracy_")
    assert dict(rows)["checkpoints"].endswith(" more")
    starts = {line.index(text) for line, (_, text) in zip(align_rows(rows), rows, strict=True)}
    assert len(starts) == 1


@pytest.mark.parametrize(("count", "words"), [(1, "1 iteration in"), (2, "2 iterations in")])
def test_the_length_is_in_words(count: int, words: str, tmp_path: Path) -> None:
    runner = make_runner(tmp_path)
    runner.iter = count
    assert f"after {words} 1 min 30 s" in describe_stop(runner, 90.0)


def test_the_time_is_that_of_the_iterations_since_a_resume(tmp_path: Path) -> None:
    runner = make_runner(tmp_path)
    runner.sites.costs.begin_training(30)
    runner.iter = 40
    assert "after 40 iterations, 10 of them in 1 min 30 s" in describe_stop(runner, 90.0)
