"""The environment of a run."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
import torch

from hookline.report.environment import environment, git_state, is_alive

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@needs_git
def test_the_state_of_a_repository_is_its_commit_branch_and_changes(tmp_path):
    git(tmp_path, "init", "-b", "trunk")
    (tmp_path / "a file.py").write_text("1")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "first")
    (tmp_path / "inner").mkdir()
    clean = git_state(tmp_path / "inner")
    assert clean is not None
    assert (clean["branch"], clean["changed"], len(clean["commit"])) == ("trunk", 0, 40)
    (tmp_path / "a file.py").write_text("2")
    (tmp_path / "untracked.py").write_text("2")
    changed = git_state(tmp_path)
    assert changed is not None
    assert (changed["changed"], changed["files"]) == (1, ["a file.py"])


@needs_git
def test_the_programs_of_a_repository_are_not_run(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "evil.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/hit\n")
    (tmp_path / "evil.sh").chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(tmp_path / "evil.sh"))
    git_state(tmp_path)
    assert not (tmp_path / "hit").exists()


def test_without_a_repository_without_git_and_with_a_hanging_git_there_is_no_state(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) is None
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    assert git_state(tmp_path) is None
    (tools / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (tools / "git").chmod(0o755)
    monkeypatch.setattr("hookline.report.environment.GIT_TIMEOUT_S", 0.2)
    assert git_state(tmp_path) is None


def test_a_process_is_identified_by_its_id_and_its_start():
    own = environment(torch.device("cpu"))
    assert own["pid"] == os.getpid()
    assert is_alive(own) is True
    assert is_alive({**own, "process_started": own["process_started"] - 100}) is False
    assert is_alive({**own, "host": "elsewhere"}) is None
    assert is_alive({}) is None
