"""The command as users have it: processes of their own, stopped by signals."""

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
import time
from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from tests.cli.helpers import ROOT, command, wait_for, write_config

SLEEPER = """
import time
from hookline import BaseHook

class Sleeper(BaseHook):
    def after_train_iter(self, runner):
        print("asleep", flush=True)
        time.sleep(600)
"""


@pytest.mark.slow
def test_the_demo_leaves_everything_reaches_97_percent_and_is_tested(tmp_path: Path) -> None:
    arguments = (str(ROOT / "configs" / "digits.yaml"), "--work-dir", "run")
    process = command("train", *arguments, cwd=tmp_path)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert "train  epoch 1/10  10/20  loss" in out
    assert "val  epoch 2  accuracy" in out
    assert out.count("stopped") == 1
    assert "stopped: reached max_epochs=10, after 200 iterations in" in out
    assert {"config.yaml", "log.jsonl", "last.pth", "best_accuracy.pth", "epoch_10.pth", "report.html", "visualizations"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["accuracy"] for row in rows if row["mode"] == "val"][-1] >= 0.97
    process = command("test", *arguments, "--json", cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["metrics"]["accuracy"] >= 0.95


@pytest.mark.parametrize(("signum", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.exhaustive), (signal.SIGTERM, 143)])
def test_a_signal_ends_training_with_a_checkpoint_from_which_it_goes_on(signum: int, code: int, tmp_path: Path) -> None:
    config = write_config(tmp_path)
    process = command("train", config, "training.epochs=100000", "hooks.checkpoint.interval=100000")
    wait_for(process, "val  epoch 2")
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert f"stopped: interrupted by {signal.Signals(signum).name}, after " in out
    assert out.count("stopped") == 1
    assert "Traceback" not in err
    assert "--resume` continues" in err
    step = CheckpointStore(tmp_path / "run").entries()[-1].step
    assert step >= 10
    process = command("train", config, f"training.epochs={step // 5 + 1}", "--resume")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert re.search(rf"resumed at epoch \d+, iteration {step}\b", out)


def test_on_a_terminal_there_is_a_bar_and_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    process, keyboard = on_terminal("train", write_config(tmp_path), "training.epochs=100000")
    screen, pressed = "", False
    while chunk := read(keyboard):
        screen += chunk
        if not pressed and re.search(r"epoch ([3-9]|\d\d+)/100000", screen):  # the bar is not drawn for every epoch
            os.write(keyboard, b"\x03")
            pressed = True
    os.close(keyboard)
    assert process.wait(timeout=60) == 130, screen
    assert "it/s" in screen
    assert "loss" in screen
    assert "interrupted by SIGINT" in screen
    assert "Traceback" not in screen
    assert CheckpointStore(tmp_path / "run").entries()


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.exhaustive)])
def test_a_second_signal_ends_it_at_once(signum: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    process = command("train", write_config(tmp_path, "  - sleeper.Sleeper\n"), cwd=tmp_path)
    wait_for(process, "asleep")
    process.send_signal(signum)
    wait_for(process, "once more stops at once", errors=True)
    sent = time.monotonic()
    process.send_signal(signum)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert time.monotonic() - sent < 5  # a second, on a machine that is not busy
    assert "Traceback" not in err


def on_terminal(*arguments: str) -> tuple[subprocess.Popen[str], int]:
    """The command on a terminal of its own, and the other end of that terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = command(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=take_terminal)
    os.close(theirs)
    return process, ours


def read(terminal: int) -> str:
    """What was written next; nothing when the process has ended."""
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:
        return ""
