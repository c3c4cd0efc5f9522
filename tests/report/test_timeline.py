"""The rows of a timeline, and the state of a run that follows from them."""

from __future__ import annotations

import torch

from hookline.report.environment import environment
from hookline.report.timeline import (
    Timeline,
    describe_error,
    describe_sessions,
    find_sessions,
    infer_state,
    read_timeline,
)

NOW = 2e9  # seconds of the clock


def start(moment: float, **more) -> dict:
    return {"what": "start", "time": moment, "iter": 0, "epoch": 0, **more}


def test_a_torn_line_does_not_affect_the_next_one(tmp_path):
    path = tmp_path / "timeline.jsonl"
    first = Timeline(path)
    first.add("start", iter=0, epoch=0)
    first.close()
    first.add("late", iter=0, epoch=0)  # as a thread that finishes late does
    with path.open("a") as file:
        file.write('{"what": "ep')
    second = Timeline(path)
    second.add("start", iter=5, epoch=1)
    second.close()
    assert [row["iter"] for row in read_timeline(path)] == [0, 5]
    assert len(find_sessions(read_timeline(path))) == 2


def test_the_state_is_that_of_the_last_process():
    alive = environment(torch.device("cpu"))
    stop = {"what": "stop", "time": 9.0, "iter": 5, "epoch": 1}
    cases = [
        ([], "unknown"),
        ([start(1.0), {**stop, "reason": "reached max_epochs=2", "finished": True}], "finished"),
        ([start(1.0), {**stop, "reason": "interrupted by SIGINT"}], "stopped"),
        ([start(1.0), {**stop, "what": "fail", "error": "ValueError: no"}], "failed"),
        ([start(1.0, **{**alive, "pid": 2**22 + 1})], "killed"),
        (
            [start(1.0, **{**alive, "process_started": 5.0})],
            "killed",
        ),  # another process has its id now
        ([start(1.0, **alive)], "running"),
        ([start(NOW - 1e6, host="elsewhere")], "killed"),
        ([start(NOW - 1.0, host="elsewhere")], "running"),
        (
            [
                start(1.0),
                {**stop, "what": "fail"},
                start(10.0),
                {**stop, "reason": "reached max_iters=5", "finished": True},
            ],
            "finished",
        ),
    ]
    for rows, expected in cases:
        assert infer_state(find_sessions(rows), None, lambda: NOW).name == expected, rows


def test_a_process_without_an_end_was_killed_after_its_last_sign():
    rows = [
        start(1.0),
        {"what": "epoch", "time": 4.0, "iter": 20, "epoch": 0},
        start(100.0, resumed=True),
    ]
    pieces = describe_sessions(find_sessions(rows), 105.0, running=True)
    assert [(piece["began"], piece["ended"], piece["how"]) for piece in pieces] == [
        (1.0, 4.0, "killed"),
        (100.0, 105.0, "running"),
    ]
    assert pieces[0]["events"][-1] == {"what": "killed", "time": 4.0, "iter": 20, "epoch": 0}


def test_frequent_events_are_reduced_and_rare_ones_are_all_shown():
    many = [{"what": "epoch", "time": 1.0 + n, "iter": n, "epoch": n} for n in range(5000)]
    rare = [{"what": "rollback", "time": 2.0 + n, "iter": n, "epoch": 0} for n in range(7)]
    (piece,) = describe_sessions(find_sessions([start(1.0), *many, *rare]), None, running=False)
    kinds = [event["what"] for event in piece["events"]]
    assert kinds.count("epoch") <= 300
    assert kinds.count("rollback") == 7


def test_secrets_in_an_error_are_masked():
    assert (
        describe_error(OSError("https://me:hunter2@host/x failed"))
        == "OSError: https://***@host/x failed"
    )
