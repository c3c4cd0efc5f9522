"""RunTraceHook: the trace of a whole run."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook, EvalHook, RunTraceHook
from tests.helpers import batches, make_runner
from tests.problems import raises_problem


def trace(path):
    return [event for event in json.loads(path.read_text()) if event["ph"] == "X"]


def test_phases_hooks_seams_and_saves_of_the_whole_run_are_there(tmp_path):
    hooks = [RunTraceHook(), EvalHook(), CheckpointHook()]
    make_runner(
        tmp_path, *hooks, train_loader=batches(40), val_loader=batches(1), max_epochs=2
    ).train()
    events = trace(tmp_path / "run_trace.json")
    counts = Counter((event["cat"], event["name"]) for event in events)
    assert sum(count for (kind, _), count in counts.items() if kind == "iteration") == 80
    for phase in ("data", "forward", "backward"):
        assert counts["phase", phase] == 80
    assert counts["phase", "optimizer"] >= 80
    assert counts["seam", "validate"] == counts["seam", "save"] == 2
    assert counts["hook", "EvalHook.after_train_epoch"] == 2
    assert counts["hook", "CheckpointHook.before_run"] == 1


def test_what_lies_inside_an_iteration_lies_inside_it(tmp_path):
    make_runner(tmp_path, RunTraceHook(), max_epochs=1).train()
    events = trace(tmp_path / "run_trace.json")
    first = next(event for event in events if event["name"] == "iteration 1")
    end = first["ts"] + first["dur"]
    inside = [event for event in events if first["ts"] <= event["ts"] < end and event is not first]
    assert {event["name"] for event in inside} >= {
        "data",
        "forward",
        "backward",
        "optimizer",
        "hooks",
    }
    assert all(event["ts"] + event["dur"] <= end + 0.1 for event in inside)
    phases = sorted((event["ts"], event["dur"]) for event in inside if event["cat"] == "phase")
    assert all(
        begin + length <= following + 0.1 for (begin, length), (following, _) in pairwise(phases)
    )


def test_the_trace_of_a_failed_run_is_whole(tmp_path):
    class Fail(BaseHook):
        def after_forward(self, runner):
            if runner.iter == 3:
                raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        make_runner(tmp_path, RunTraceHook(), Fail()).train()
    assert "Fail.after_forward" in [event["name"] for event in trace(tmp_path / "run_trace.json")]


def test_a_second_run_keeps_the_trace_of_the_first(tmp_path):
    for _ in range(3):
        make_runner(tmp_path, RunTraceHook(path="traces/run.json"), max_iters=2).train()
    assert sorted(path.name for path in (tmp_path / "traces").iterdir()) == [
        "run.1.json",
        "run.2.json",
        "run.json",
    ]


@pytest.mark.parametrize("path", ["", "../run.json", "/tmp/run.json"])
def test_a_path_outside_of_the_work_directory_is_refused(path):
    with raises_problem(component="RunTraceHook", parameter="path", value=path):
        RunTraceHook(path=path)
