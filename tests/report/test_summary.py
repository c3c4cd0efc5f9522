"""The summary of a run."""

from __future__ import annotations

from typing import Any

from hookline.report.summary import summarize

DATA: dict[str, Any] = {
    "state": {"name": "finished", "why": "reached max_epochs=2"},
    "best": {"val/accuracy": {"value": 0.98764, "iter": 20}},
    "last": {"train/loss": 0.5, "val/loss": 0.25, "lr": 0.1},
    "epoch": 2,
    "max_epochs": 2,
    "iter": 20,
    "max_iters": None,
    "sessions": [{"began": 0.0, "ended": 10.0}, {"began": 100.0, "ended": 105.0}],
    "folder": "runs/a",
    "mirror": {},
}
GIT = {"commit": "0123456789abcdef", "branch": "main", "changed": 7, "files": list("abcdefg")}


def rows(about: dict[str, Any] | None = None, git: dict[str, Any] | None = None, **changes: Any):
    return dict(summarize({**DATA, **changes}, about or {}, git or {}))


def test_the_summary_has_the_results_and_the_progress():
    found = rows()
    assert found["state"] == "finished: reached max_epochs=2"
    assert found["best"] == "val/accuracy 0.9876 (iteration 20)"
    assert found["last"] == "val/loss 0.25, train/loss 0.5"
    assert found["progress"] == "epoch 2 of 2, iteration 20"
    assert found["duration"] == "15.0 s in 2 sessions, over 1 min 45 s"


def test_the_time_left_is_shown_while_the_run_is_running():
    last = {"train/eta": 90.0}
    running = rows(state={"name": "running", "why": ""}, last=last)
    assert running["progress"] == "epoch 2 of 2, iteration 20, 1 min 30 s left"
    assert rows(last=last)["progress"] == "epoch 2 of 2, iteration 20"


def test_unknown_facts_are_left_out():
    found = rows(sessions=[], best={}, last={})
    assert set(found) == {"state", "progress", "folder"}


def test_the_machine_is_described_by_its_gpus_or_its_device():
    about = {"host": "h", "system": "Linux", "cpu": "c", "cores": 2, "memory_gb": 8}
    machine = rows({**about, "device": "cpu"})["machine"]
    assert machine == "h · Linux · c × 2 · 8 GB · device cpu"
    assert rows({**about, "gpus": ["A100"]})["machine"].endswith("A100")


def test_the_code_is_described_by_its_commit_and_changes():
    assert rows(git=GIT)["code"] == "main 0123456789ab, with 7 changed files: a, b, c, d, e, …"
    assert rows(git={**GIT, "changed": 0})["code"] == "main 0123456789ab, without changes"


def test_deterministic_algorithms_are_listed_if_they_were_used():
    assert rows({"deterministic": True})["deterministic"] == "yes"
    assert "deterministic" not in rows({"deterministic": False})


def test_values_of_unexpected_types_do_no_harm():
    assert "versions" not in rows({"versions": "1.0"})
    assert rows({"versions": {"torch": 2}})["versions"] == "torch 2"


def test_the_summary_names_the_checkpoints_that_are_only_local():
    status = {"url": "s3://b/run", "only_local": ["last.pth"], "failures": 3, "error": "denied"}
    found = rows(mirror=status)["mirror"]
    assert all(text in found for text in ("s3://b/run", "last.pth", "3 failures", "denied"))
    assert rows(mirror={"url": "s3://b/run", "only_local": []})["mirror"] == "s3://b/run"
