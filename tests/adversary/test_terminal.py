"""Terminal escapes in foreign files: none of them reaches a terminal or a log."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint import CheckpointStore, write_checkpoint
from hookline.cli.main import main
from hookline.cli.output import print_table
from hookline.hooks import CheckpointHook, LoggerHook
from tests.cli.helpers import write_config
from tests.helpers import make_runner

# Clear the screen, set the title, C1 control, carriage return, right-to-left override.
HOSTILE = "x\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202ey\u2028z"
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]")


def hostile_checkpoint(path: Path, more: str = "") -> Path:
    content: dict[str, Any] = {
        "meta": {"epoch": 1, "iter": 2, HOSTILE: HOSTILE + more, "versions": {"torch": HOSTILE}},
        "state_dict": {f"{HOSTILE}{more}": torch.zeros(2)},
        "events": {HOSTILE: {}},
        HOSTILE: f"{HOSTILE}{more}",
    }
    write_checkpoint(content, path)
    return path


def assert_harmless(captured: Any) -> None:
    for text in (captured.out, captured.err):
        assert not UNPRINTABLE.search(text), ascii(text)


@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["publish"], ["verify"]])
def test_a_foreign_checkpoint_cannot_write_to_the_terminal(command, tmp_path, capsys):
    path = hostile_checkpoint(tmp_path / "foreign.pth")
    main(["ckpt", *command[:1], str(path), *command[1:]])
    captured = capsys.readouterr()
    assert captured.out + captured.err
    assert_harmless(captured)
    if "--json" in command:
        assert any("\x1b" in key for key in json.loads(captured.out))


def test_the_differences_of_foreign_checkpoints_are_harmless(tmp_path, capsys):
    one = hostile_checkpoint(tmp_path / "one.pth")
    other = hostile_checkpoint(tmp_path / "other.pth", "more")
    assert main(["ckpt", "diff", str(one), str(other)]) == 1
    captured = capsys.readouterr()
    assert "\\x1b" in captured.out
    assert_harmless(captured)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_foreign_manifest_is_listed_harmlessly(options, tmp_path, capsys):
    store = CheckpointStore(tmp_path)
    store.prepare()
    store.save({"meta": {}}, "a.pth", step=1, epoch=1, metrics={HOSTILE: 1.0}, tags=[HOSTILE])
    store.unlock()
    assert main(["ckpt", "ls", str(tmp_path), *options]) == 0
    assert_harmless(capsys.readouterr())


def test_a_foreign_log_is_shown_harmlessly(tmp_path, capsys):
    row = {"mode": "train", "iter": 1, "epoch": 1, f"loss{HOSTILE}": 1.0, "loss": 1.0}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["log", str(tmp_path)]) == 0
    main(["log", str(tmp_path), "--metric", HOSTILE])
    assert_harmless(capsys.readouterr())


def test_errors_in_a_hostile_config_are_harmless(tmp_path, capsys):
    config = write_config(tmp_path, f"  - {{type: {json.dumps(HOSTILE)}}}\n")
    assert main(["plan", config]) != 0
    assert_harmless(capsys.readouterr())


def test_a_terminal_shows_no_escapes_of_a_cell(monkeypatch):
    class Terminal(io.StringIO):
        """A stream that claims to be a terminal."""

        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table([("name", HOSTILE)])
    shown = terminal.getvalue()
    assert "owned" in shown
    assert not re.search(r"\x1b\]|\x1b\[2J|\x9b|\x07|\u202e", shown)


def test_a_message_of_a_resume_is_harmless_in_the_log(tmp_path):
    logging.getLogger("hookline").setLevel(logging.INFO)
    make_runner(tmp_path, CheckpointHook(), config={"seed": HOSTILE}, max_epochs=1).train()
    hooks = (CheckpointHook(), LoggerHook())
    runner = make_runner(tmp_path, *hooks, config={"seed": 2}, resume="auto")
    runner.train()
    text = (tmp_path / "hookline.log").read_text()
    assert "owned" in text
    assert not UNPRINTABLE.search(text)
