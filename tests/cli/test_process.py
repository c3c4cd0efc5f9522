"""`hookline` as a process that signals stop."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest

from hookline.checkpoint import CheckpointStore
from tests.cli.helpers import ROOT, command, wait_for, write_config
from tests.waiting import LIMIT_S

SLEEPER = """
import signal
from hookline import BaseHook

class Sleeper(BaseHook):
    def after_train_iter(self, runner):
        print("asleep", flush=True)
        while True:
            signal.pause()
"""


@pytest.mark.slow
def test_the_demo_writes_all_files_and_reaches_97_percent(tmp_path: Path) -> None:
    arguments = (str(ROOT / "hookline" / "configs" / "digits.yaml"), "--work-dir", "run")
    process = command("train", *arguments, cwd=tmp_path)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert "train  epoch 1/10  10/20   loss" in out
    assert re.search("^val  epoch 2 +accuracy", out, re.MULTILINE)
    assert out.count("stopped") == 1
    assert "stopped: reached max_epochs=10, after 200 iterations in" in out
    assert {
        "config.yaml",
        "log.jsonl",
        "last.pth",
        "best_accuracy.pth",
        "epoch_10.pth",
        "report.html",
        "visualizations",
    } <= {path.name for path in (tmp_path / "run").iterdir()}
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["accuracy"] for row in rows if row["mode"] == "val"][-1] >= 0.97
    process = command("test", *arguments, "--json", cwd=tmp_path)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["metrics"]["accuracy"] >= 0.95


@pytest.mark.parametrize(
    ("signum", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.exhaustive), (signal.SIGTERM, 143)],
)
def test_a_signal_stops_training_with_a_checkpoint_to_resume_from(
    signum: int, code: int, tmp_path: Path
) -> None:
    config = write_config(tmp_path)
    process = command("train", config, "training.epochs=100000", "hooks.checkpoint.interval=100000")
    wait_for(process, "val  epoch 2")
    process.send_signal(signum)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code, err
    assert f"stopped: interrupted by {signal.Signals(signum).name}, after " in out
    assert out.count("stopped") == 1
    assert "Traceback" not in err
    assert "the same command with `--resume`" in err
    step = CheckpointStore(tmp_path / "run").entries()[-1].step
    assert step >= 10
    process = command("train", config, f"training.epochs={step // 5 + 1}", "--resume")
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert re.search(rf"resumed at epoch \d+, iteration {step}\b", out)


def test_a_terminal_shows_a_progress_bar_and_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    process, keyboard = on_terminal("train", write_config(tmp_path), "training.epochs=100000")
    screen, pressed = "", False
    while chunk := read(keyboard):
        screen += chunk
        # The bar is not drawn for every epoch.
        if not pressed and re.search(r"epoch ([3-9]|\d\d+)/100000", screen):
            os.write(keyboard, b"\x03")
            pressed = True
    os.close(keyboard)
    assert process.wait(timeout=LIMIT_S) == 130, screen
    assert "it/s" in screen
    assert "loss" in screen
    assert "interrupted by SIGINT" in screen
    assert "Traceback" not in screen
    assert CheckpointStore(tmp_path / "run").entries()


@pytest.mark.parametrize(
    ("signum", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.exhaustive)],
)
def test_a_second_signal_stops_without_waiting_for_the_iteration(
    signum: int, code: int, tmp_path: Path
) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    process = command("train", write_config(tmp_path, "  - sleeper.Sleeper\n"), cwd=tmp_path)
    wait_for(process, "asleep")
    process.send_signal(signum)
    wait_for(process, "finishing this iteration", errors=True)
    process.send_signal(signum)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code
    assert "Traceback" not in err


COLOR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7])(?:;\d+)*m")


@pytest.mark.parametrize(
    ("variables", "has_colors", "is_live"),
    [
        ({"TERM": "xterm-256color"}, True, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colors_and_the_bar_respect_the_terminal(
    variables: dict[str, str], has_colors: bool, is_live: bool, tmp_path: Path
) -> None:
    unset = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    others = {name: value for name, value in os.environ.items() if name not in unset}
    environment = {**others, "PYTHONPATH": str(ROOT), **variables}
    process, terminal = on_terminal("train", write_config(tmp_path), env=environment)
    screen = ""
    while part := read(terminal):
        screen += part
    os.close(terminal)
    assert process.wait(LIMIT_S) == 0
    assert bool(COLOR.search(screen)) == has_colors
    assert ("\x1b[" in screen) == is_live


def test_a_validation_is_a_line_below_that_of_training_and_the_summary_is_short(
    tmp_path: Path,
) -> None:
    process = command("train", write_config(tmp_path), "training.epochs=2")
    out, _ = process.communicate(timeout=LIMIT_S)
    lines = out.splitlines()
    train = next(line for line in lines if line.startswith("train  epoch 2/2"))
    validation = next(line for line in lines if line.startswith("val  epoch 2"))
    assert train.index("loss") == validation.index("accuracy")
    summary = lines[lines.index(next(line for line in lines if line.startswith("stopped: "))) :]
    assert len(summary) <= 10
    labels = [line.split()[0] for line in summary]
    # A row about validations and saves is there if they took much of the time.
    assert labels[:2] == ["stopped:", "speed"]
    rest = [label for label in labels[2:] if label != "overhead"]
    assert rest == ["last", "best", "checkpoints", "report", "files", "next"]
    # The details are in the log.
    text = (tmp_path / "run" / "hookline.log").read_text()
    for detail in ("Overall training speed", "an iteration took"):
        assert detail in text
        assert detail not in out


def on_terminal(*arguments: str, **options: Any) -> tuple[subprocess.Popen[str], int]:
    """Start the command on a new terminal; return the process and the other end."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = command(
        *arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
        **options,
    )
    os.close(theirs)
    return process, ours


def read(terminal: int) -> str:
    """Return the next output, or an empty string when the process has ended."""
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:
        return ""
