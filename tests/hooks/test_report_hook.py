"""What a run leaves for its report."""

from __future__ import annotations

import json
import logging

import pytest

from hookline.engine import BaseHook
from hookline.hooks import (
    CheckpointHook,
    GradientFlowHook,
    LoggerHook,
    ReportHook,
    RollbackHook,
    StopAtHook,
)
from hookline.report.control import send_request
from tests.helpers import batches, make_runner
from tests.problems import logged
from tests.waiting import wait_until


def rows(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "timeline.jsonl").read_text().splitlines()]


def kinds(folder) -> list[str]:
    return [row["what"] for row in rows(folder) if row["what"] != "git"]


class Ends(BaseHook):
    """Ends the run in some way, in its third iteration."""

    def __init__(self, how: str) -> None:
        self.how = how

    def after_train_iter(self, runner):
        if runner.iter == 2:
            if self.how == "error":
                raise RuntimeError("https://user:secret@host is down")
            runner.request_stop("enough")


def test_the_timeline_of_a_run_and_its_page(tmp_path):
    make_runner(
        tmp_path, LoggerHook(interval=1), CheckpointHook(), ReportHook(), val_loader=batches(1)
    ).train()
    assert kinds(tmp_path) == ["start", "epoch", "save", "epoch", "save", "stop"]
    first, last = rows(tmp_path)[0], next(row for row in rows(tmp_path) if row["what"] == "stop")
    assert first["versions"]["torch"]
    assert first["max_epochs"] == 2
    assert [row["epoch"] for row in rows(tmp_path) if row["what"] != "git"] == [1, 1, 1, 2, 2, 2]
    assert (last["reason"], last["iter"]) == ("reached max_epochs=2", 8)
    assert "train/loss" in (tmp_path / "report.html").read_text()


def test_a_failed_run_has_a_page_and_no_secret_in_it(tmp_path):
    with pytest.raises(RuntimeError):
        make_runner(tmp_path, LoggerHook(interval=1), ReportHook(), Ends("error")).train()
    assert kinds(tmp_path) == ["start", "fail"]
    page = (tmp_path / "report.html").read_text()
    assert "***@host is down" in page
    assert "raised in Ends at after_train_iter" in page
    assert "secret" not in page


def test_a_new_run_starts_a_timeline_and_a_resumed_run_continues_it(tmp_path):
    make_runner(tmp_path, CheckpointHook(), ReportHook(), max_epochs=1).train()
    make_runner(tmp_path, CheckpointHook(), ReportHook(), resume="auto").train()
    assert kinds(tmp_path) == ["start", "epoch", "save", "stop", "start", "epoch", "save", "stop"]
    assert [row["resumed"] for row in rows(tmp_path) if row["what"] == "start"] == [False, True]
    make_runner(tmp_path, CheckpointHook(), ReportHook(), max_epochs=1).train()
    assert kinds(tmp_path) == ["start", "epoch", "save", "stop"]
    assert (tmp_path / "timeline.1.jsonl").exists()


@pytest.mark.parametrize("stop", [4, 6, 8])
def test_a_resume_is_recorded_in_the_epoch_that_the_log_names(tmp_path, stop, caplog):
    make_runner(tmp_path, CheckpointHook(), ReportHook(), StopAtHook(iter=stop)).train()
    with caplog.at_level(logging.INFO, logger="hookline"):
        make_runner(tmp_path, CheckpointHook(), ReportHook(), resume="auto").train()
    start = [row for row in rows(tmp_path) if row["what"] == "start"][-1]
    assert (start["iter"], start["epoch"]) == (stop, 2)
    if stop < 8:  # The run of eight iterations is finished.
        assert f"resumed at epoch 2, iteration {stop}" in caplog.messages


def test_a_rollback_is_recorded_with_both_iterations(tmp_path):
    class Spoil(BaseHook):
        done = False

        def after_forward(self, runner):
            if runner.iter == 6 and not self.done:
                self.done = True
                runner.outputs["loss"] = runner.outputs["loss"] * float("nan")

    logging.getLogger("hookline").setLevel(logging.ERROR)
    make_runner(
        tmp_path,
        LoggerHook(interval=1),
        CheckpointHook(),
        GradientFlowHook(),
        RollbackHook(),
        ReportHook(),
        Spoil(),
    ).train()
    (back,) = [row for row in rows(tmp_path) if row["what"] == "rollback"]
    assert (back["iter"], back["from_iter"]) == (4, 7)


@pytest.mark.parametrize("action", ["save", "stop"])
def test_what_is_asked_for_happens_at_the_next_seam(tmp_path, action):
    class Ask(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 3:
                send_request(tmp_path, action)
                wait_until(
                    lambda: runner.loop.requests.due_at <= runner.iter, "the request at the seam"
                )

    hooks = [CheckpointHook(interval=1000), ReportHook(), Ask()]
    runner = make_runner(tmp_path, *hooks, max_iters=8)
    runner.train()
    asked = next(row for row in rows(tmp_path) if row["what"] == "requested")
    save = next(row for row in rows(tmp_path) if row["what"] == "save")
    assert save["iter"] == asked["iter"] == 4
    assert runner.iter == (4 if action == "stop" else 8)
    assert runner.stop_reason.hook == ("ReportHook" if action == "stop" else "")


def test_an_evaluation_leaves_no_files(tmp_path):
    make_runner(tmp_path / "run", ReportHook(), val_loader=batches(1)).validate()
    assert not (tmp_path / "run").exists()


def test_a_page_that_cannot_be_made_does_not_harm_the_run(tmp_path, caplog):
    (tmp_path / "report.html").mkdir()
    runner = make_runner(tmp_path, ReportHook())
    runner.train()
    assert runner.iter == 8
    assert logged(caplog, "report")


def test_it_has_nothing_to_do_in_an_iteration():
    per_iteration = (
        "before_train_iter",
        "after_forward",
        "after_backward",
        "after_optimizer_step",
        "after_train_iter",
    )
    assert [site for site in per_iteration if ReportHook().site_method(site)] == []
