"""Checkpoints, looked at from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
