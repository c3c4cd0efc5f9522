"""What the rows of a timeline mean."""

from __future__ import annotations

import time

from hookline.report.environment import environment
from hookline.report.timeline import Timeline, one_line, read_timeline, sessions, shown, state_of


def start(moment: float, **more) -> dict:
    return {"what": "start", "time": moment, "iter": 0, "epoch": 0, **more}


def test_a_line_torn_by_a_kill_spoils_neither_itself_nor_the_next(tmp_path):
    path = tmp_path / "timeline.jsonl"
    first = Timeline(path)
    first.add("start", iter=0, epoch=0)
    first.close()
    first.add("late", iter=0, epoch=0)  # a probe that is done when the run is over
    with path.open("a") as file:
        file.write('{"what": "ep')
    second = Timeline(path)
    second.add("start", iter=5, epoch=1)
    second.close()
    assert [row["iter"] for row in read_timeline(path)] == [0, 5]
    assert len(sessions(read_timeline(path))) == 2


def test_the_state_is_that_of_the_last_process():
    import torch

    alive = environment(torch.device("cpu"))
    stop = {"what": "stop", "time": 9.0, "iter": 5, "epoch": 1}
    cases = [
        ([], "unknown"),
        ([start(1.0), {**stop, "reason": "reached max_epochs=2"}], "finished"),
        ([start(1.0), {**stop, "reason": "interrupted by SIGINT"}], "stopped"),
        ([start(1.0), {**stop, "what": "fail", "error": "ValueError: no"}], "failed"),
        ([start(1.0, **{**alive, "pid": 2**22 + 1})], "killed"),
        ([start(1.0, **{**alive, "process_started": 5.0})], "killed"),  # the number has been given to another process
        ([start(1.0, **alive)], "running"),
        ([start(1.0, host="elsewhere")], "killed"),
        ([start(time.time(), host="elsewhere")], "running"),
        ([start(1.0), {**stop, "what": "fail"}, start(10.0), {**stop, "reason": "reached max_iters=5"}], "finished"),
    ]
    for rows, expected in cases:
        assert state_of(sessions(rows), None).name == expected, rows


def test_a_process_without_an_end_was_interrupted_when_it_was_last_heard_of():
    rows = [start(1.0), {"what": "epoch", "time": 4.0, "iter": 20, "epoch": 0}, start(100.0, resumed=True)]
    pieces = shown(sessions(rows), 105.0, running=True)
    assert [(piece["began"], piece["ended"], piece["how"]) for piece in pieces] == [(1.0, 4.0, "killed"), (100.0, 105.0, "running")]
    assert pieces[0]["events"][-1] == {"what": "killed", "time": 4.0, "iter": 20, "epoch": 0}


def test_of_very_many_events_a_selection_is_shown_and_of_rare_ones_all():
    many = [{"what": "epoch", "time": 1.0 + n, "iter": n, "epoch": n} for n in range(5000)]
    rare = [{"what": "rollback", "time": 2.0 + n, "iter": n, "epoch": 0} for n in range(7)]
    (piece,) = shown(sessions([start(1.0), *many, *rare]), None, running=False)
    kinds = [event["what"] for event in piece["events"]]
    assert kinds.count("epoch") <= 300
    assert kinds.count("rollback") == 7


def test_secrets_do_not_get_into_an_error():
    assert one_line(OSError("https://me:hunter2@host/x failed")) == "OSError: https://***@host/x failed"
