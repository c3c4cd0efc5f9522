from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookline.profiling.run_trace import MAX_BUFFERED, RunTrace
from tests.clock import FakeClock


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunTrace:
    monkeypatch.setattr("hookline.profiling.run_trace.perf_counter", FakeClock())
    return RunTrace(tmp_path / "traces" / "trace.json")


def events_of(tmp_path: Path) -> list[dict[str, object]]:
    events = json.loads((tmp_path / "traces" / "trace.json").read_text())
    assert events[0]["args"] == {"name": "hookline"}
    return events[1:]


def test_spans_are_written_inside_out(trace: RunTrace, tmp_path: Path) -> None:
    trace.end()  # of a span that began before the trace
    trace.begin("iteration", "3")
    trace.begin("phase", "forward")
    trace.end()
    trace.begin("hook", "EMAHook.after_train_iter")
    trace.close()
    events = events_of(tmp_path)
    assert [(event["name"], event["cat"]) for event in events] == [
        ("forward", "phase"),
        ("EMAHook.after_train_iter", "hook"),
        ("iteration 3", "iteration"),
    ]
    assert {event["ph"] for event in events} == {"X"}


def test_a_full_buffer_is_written(trace: RunTrace, tmp_path: Path) -> None:
    for number in range(MAX_BUFFERED):
        trace.begin("phase", str(number))
        trace.end()
    assert trace._ready == []
    trace.close()
    assert len(events_of(tmp_path)) == MAX_BUFFERED
