"""Checkpoints, looked at from the command line."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import torch

from hookline.checkpoint import write_checkpoint
from hookline.cli.main import main
from tests.cli.helpers import write_config


def test_a_checkpoint_is_shown_with_its_date_and_the_names_of_what_it_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", write_config(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["ckpt", "show", str(tmp_path / "run")]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", rows["meta.time"])
    assert rows["events"].startswith("the latest values of ")
    assert "loss" in rows["events"]
    assert not re.search(r"\d\.\d", rows["events"])


def test_a_run_in_pieces_differs_from_a_straight_one_in_nothing_that_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, "  - {type: TimeTrackingHook, log_path: '${work_dir}/times.txt'}\n")
    straight, pieces, other = (str(tmp_path / name) for name in ("straight", "pieces", "other"))
    assert main(["train", config, "training.epochs=2", "--work-dir", straight]) == 0
    assert main(["train", config, "--work-dir", pieces]) == 0
    assert main(["train", config, "training.epochs=2", "--work-dir", pieces, "--resume"]) == 0
    assert main(["train", config, "training.epochs=2", "--work-dir", other, "seed=2"]) == 0
    capsys.readouterr()
    assert main(["ckpt", "diff", straight, pieces]) == 0
    *lines, left_out = capsys.readouterr().out.splitlines()
    parts = dict(line.split(maxsplit=1) for line in lines)
    assert {"meta", "state_dict", "optimizer", "hooks", "rng", "loader", "events", "config"} == set(parts)
    assert set(parts.values()) == {"equal"}
    assert left_out.startswith("left out, for they differ between any two runs: times, memory")

    assert main(["ckpt", "diff", straight, other]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"^state_dict +\S+: \d+ of \d+ values differ, by up to ", shown, re.MULTILINE)
    assert re.search(r"^config +seed: 1 and 2$", shown, re.MULTILINE)
    assert not re.search("time|memory_mb|wall", shown.rpartition("left out")[0])


def test_a_part_that_only_one_checkpoint_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {"state_dict": {"weight": torch.ones(2)}}
    write_checkpoint({**weights, "mine": 1}, tmp_path / "one.pth")
    write_checkpoint({**weights, "mine": 2, "ema_state_dict": weights["state_dict"]}, tmp_path / "two.pth")
    assert main(["ckpt", "diff", str(tmp_path / "one.pth"), str(tmp_path / "two.pth")]) == 1
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [["state_dict", "equal"], ["mine", "1 and 2"], ["ema_state_dict", "only in the second"]]


def test_what_each_process_kept_for_itself_is_compared_without_its_clocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(name: str, seconds: float, loss: float) -> str:
        events = {"time": {"window": [seconds], "smoothed": True}, "loss": {"window": [loss], "smoothed": True}}
        torch.save({"rng": {"torch": torch.zeros(2)}, "events": events}, stream := io.BytesIO())
        write_checkpoint({"by_rank": [torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8)]}, tmp_path / name)
        return str(tmp_path / name)

    one = write("one.pth", 0.1, 2.0)
    assert main(["ckpt", "diff", one, write("two.pth", 0.2, 2.0)]) == 0
    capsys.readouterr()
    assert main(["ckpt", "diff", one, write("three.pth", 0.1, 3.0)]) == 1
    assert capsys.readouterr().out.startswith("by_rank  [0].events.loss.window[0]: 2.0 and 3.0\n")


def test_help_names_the_actions_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "ls, show, verify, publish, diff, consolidate, import" in " ".join(capsys.readouterr().out.split())
