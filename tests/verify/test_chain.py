"""When a run is killed, and which kills count."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

from hookline.checkpoint import CheckpointStore
from hookline.cli.verify_resume import _kill_and_compare
from hookline.verify import Chain, run_chain
from hookline.verify.chain import has_saved
from hookline.verify.trace import TRAINING


def fork(work_dir, pause: float = 0.0, rest: float = 0.0) -> int:
    """A run that trains for a while, saves, and goes on for a while; `began.txt` says whether it found a checkpoint."""
    work_dir.mkdir(parents=True, exist_ok=True)
    process = os.fork()
    if process:
        return process
    with (work_dir / "began.txt").open("a") as file:
        file.write("resumed\n" if has_saved(work_dir) else "anew\n")
    (work_dir / TRAINING).write_text(str(os.getpid()))
    time.sleep(pause)
    save(work_dir)
    time.sleep(rest)
    os._exit(0)


def save(work_dir) -> None:
    store = CheckpointStore(work_dir)
    store.prepare()
    store.save({"state_dict": {}, "rng": {}, "meta": {}}, "last.pth", step=1, epoch=1)
    store.unlock()


def test_a_run_is_killed_only_when_it_has_something_to_resume_from(tmp_path):
    result = run_chain(lambda work_dir: fork(work_dir, 0.15, 0.3), tmp_path, Chain(3, span=0.05, early=0.5, in_save=0.0))
    assert result.failures == []
    assert result.kills == 3
    assert (tmp_path / "began.txt").read_text().split() == ["anew", "resumed", "resumed", "resumed"]


def test_a_run_that_never_saves_is_given_up(tmp_path):
    result = run_chain(lambda work_dir: fork(work_dir, 5), tmp_path, Chain(1, span=0.01, limit=0.2))
    assert result.kills == 0
    assert result.failures == ["there was no checkpoint after 0 s"]


def test_a_run_that_saves_at_its_end_only_is_not_said_to_have_resumed(tmp_path, capsys):
    save(tmp_path / "straight")
    launcher = SimpleNamespace(start=lambda work_dir: SimpleNamespace(pid=fork(work_dir)))
    assert _kill_and_compare(launcher, tmp_path / "straight", tmp_path, kills=1, seed=0, seconds=600.0) == 1
    said = capsys.readouterr().out
    assert "never resumed from a checkpoint: it was through before it could be killed after a save" in said
    assert "bit-identical" not in said
