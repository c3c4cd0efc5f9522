"""`hookline train --nproc`: several processes, started by torchrun."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.cli.main import main
from tests.cli.helpers import write_config
from tests.cli.test_process import on_terminal, read
from tests.waiting import LIMIT_S


@pytest.mark.slow
def test_ctrl_c_makes_all_processes_save_and_stop(tmp_path: Path) -> None:
    arguments = ("training.epochs=100000", "hooks.checkpoint.interval=100000")
    process, keyboard = on_terminal("train", write_config(tmp_path), *arguments, "--nproc", "2")
    screen, pressed = "", False
    while chunk := read(keyboard):
        screen += chunk
        if not pressed and re.search(r"epoch ([3-9]|\d\d+)/100000", screen):
            os.write(keyboard, b"\x03")
            pressed = True
    os.close(keyboard)
    assert process.wait(timeout=LIMIT_S) == 130, screen
    assert screen.count("SIGINT: finishing this iteration, saving and stopping") == 2
    (reached,) = re.findall(
        r"stopped: interrupted by SIGINT, after (\d+) iterations",
        re.sub(r"\x1b\[[\d;]*m", "", screen),
    )
    assert CheckpointStore(tmp_path / "run").entries()[-1].step == int(reached)


def test_a_restarted_job_resumes_from_its_checkpoint_or_else_as_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="hookline")
    config = write_config(tmp_path)
    assert main(["train", config, "--work-dir", str(tmp_path / "before"), "training.epochs=2"]) == 0
    given = ["--resume", str(tmp_path / "before" / "epoch_1.pth")]
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    # The first process was killed before it had saved.
    assert main(["train", config, *given, "training.epochs=3"]) == 0
    assert "resumed at epoch 2, iteration 5" in caplog.text
    assert main(["train", config, *given, "training.epochs=4"]) == 0
    assert "resumed at epoch 4, iteration 15" in caplog.text
    # The saved config keeps the value that was given.
    assert "epoch_1.pth" in (tmp_path / "run" / "config.yaml").read_text()


def test_a_restarted_job_ignores_checkpoints_of_an_earlier_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="hookline")
    config = write_config(tmp_path)
    assert main(["train", config, "training.epochs=2"]) == 0
    monkeypatch.setattr("hookline.cli.train.first_launch_time", lambda world: time.time())
    assert main(["train", config, "training.epochs=2"]) == 0
    assert "resumed" not in caplog.text
