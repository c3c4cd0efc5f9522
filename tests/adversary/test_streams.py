"""Closed, full and missing standard streams: none of them fails a run that trains."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.events.console import ConsoleWriter
from tests.cli.helpers import command, write_config
from tests.waiting import LIMIT_S

PRINTING = """
from hookline import BaseHook

class Printing(BaseHook):
    def after_train_iter(self, runner):
        print("x" * 10_000, flush=True)
"""


def run(tmp_path: Path, **streams: Any) -> tuple[int, str]:
    """Train a model in a process that also prints; return its exit code and its error output."""
    (tmp_path / "printing.py").write_text(PRINTING)
    config = write_config(tmp_path, "  - printing.Printing\n")
    process = command("train", config, cwd=tmp_path, **streams)
    _, errors = process.communicate(timeout=LIMIT_S)
    return process.returncode, errors or ""


def rows(tmp_path: Path) -> int:
    return len((tmp_path / "run" / "log.jsonl").read_text().splitlines())


def test_a_full_disk_under_standard_output_does_not_fail_a_run(tmp_path):
    with open("/dev/full", "w") as full:
        assert run(tmp_path, stdout=full) == (0, "")
    assert rows(tmp_path) >= 3


def test_a_closed_pipe_does_not_fail_a_run(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    assert run(tmp_path, stdout=writer, stderr=writer) == (0, "")
    assert rows(tmp_path) >= 3
    os.close(writer)


def test_missing_streams_do_not_fail_a_run_nor_reach_its_files(tmp_path):
    def close_streams() -> None:
        for descriptor in range(3):
            os.close(descriptor)

    streams = {"stdin": None, "stdout": None, "stderr": None}
    code, _ = run(tmp_path, preexec_fn=close_streams, **streams)
    assert code == 0
    assert rows(tmp_path) >= 3
    for path in (tmp_path / "run").iterdir():
        assert not path.is_file() or b"x" * 1000 not in path.read_bytes()


def test_a_full_disk_fails_a_command_whose_output_is_its_result(tmp_path):
    with open("/dev/full", "w") as full:
        process = command("hooks", stdout=full)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")

    def isatty(self) -> bool:
        return True


class Progress:
    """The counters of a run at its beginning."""

    iter = epoch = inner_iter = 0
    epoch_length = max_epochs = max_iters = 10
    mode = "train"


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("stream", [Full(), None])
def test_the_console_of_a_run_in_python_never_raises(live, stream, monkeypatch):
    loggers = [logging.getLogger("hookline"), logging.getLogger()]
    for logger in loggers:
        monkeypatch.setattr(logger, "handlers", [])
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", errors)
    writer = ConsoleWriter(Progress(), live=live and stream is not None)
    writer.write_scalars("train", {"loss": 1.0}, iter=1, epoch=1)
    writer.write_scalars("val", {"loss": 1.0}, iter=1, epoch=1)
    writer.close()
    assert errors.getvalue() == ""


def test_a_closed_terminal_does_not_fail_a_python_script(tmp_path):
    code = "import sys; from hookline.streams import UnfailingStream as U; U(sys.stdout).write('x')"
    code += "; U(sys.stdout).flush()"
    reader, writer = os.pipe()
    os.close(reader)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
