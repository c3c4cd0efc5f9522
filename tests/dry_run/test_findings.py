"""Findings from exceptions, with advice."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hookline.dry_run.findings import MAX_TEXT_CHARACTERS, DryRunResult, Finding, finding_from_error
from hookline.errors import ConfigError, add_note


class Unreadable(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise FileNotFoundError(f"/data/{index}.png")


def caught(function) -> Exception:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("no error")


def test_a_result_keeps_each_text_once() -> None:
    result = DryRunResult()
    result.add([Finding("error", "training", "a"), Finding("warning", "log", "b")])
    result.add([Finding("error", "validation", "a"), Finding("warning", "log", "c")])
    assert [finding.text for finding in result.errors] == ["a"]
    assert [finding.text for finding in result.warnings] == ["b", "c"]
    assert result.has_error_in("training")
    assert not result.has_error_in("validation")
    assert not result.has_error_in("log")


def test_an_error_is_described_with_type_notes_and_line_of_the_user(tmp_path: Path) -> None:
    script = tmp_path / "user_code.py"
    script.write_text("def fail():\n    return [].pop()\n")
    namespace: dict = {}
    exec(compile(script.read_text(), str(script), "exec"), namespace)  # noqa: S102
    error = caught(namespace["fail"])
    add_note(error, "in a hook")
    finding = finding_from_error(error, "validation")
    assert finding.level == "error"
    assert finding.where == "validation"
    assert finding.text == f"IndexError: pop from empty list (in a hook; {script}:2)"


def test_an_error_of_hookline_keeps_its_message() -> None:
    finding = finding_from_error(ConfigError("unknown key"), "training")
    assert finding.text == "unknown key"
    assert finding.advice == ""


def test_secrets_are_masked() -> None:
    finding = finding_from_error(ValueError("https://me:secret@host/path"), "training")
    assert "secret" not in finding.text


def test_a_long_message_is_one_short_line() -> None:
    finding = finding_from_error(ValueError("word\n" * 1000), "training")
    assert "\n" not in finding.text
    assert len(finding.text) < MAX_TEXT_CHARACTERS + 100


def test_the_error_of_a_data_worker_is_shown_instead_of_its_traceback() -> None:
    loader = DataLoader(Unreadable(), num_workers=1)
    finding = finding_from_error(caught(lambda: next(iter(loader))), "training")
    assert finding.text.startswith("FileNotFoundError: in a data worker: ")
    assert "Traceback" not in finding.text
    assert "restore the file" in finding.advice


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (MemoryError(), "batch_size"),
        (torch.OutOfMemoryError("CUDA out of memory"), "batch_size"),
        (RuntimeError("DefaultCPUAllocator: out of memory"), "batch_size"),
        (FileNotFoundError("x.png"), "restore the file"),
        (ModuleNotFoundError("No module named 'x'"), "install"),
        (pickle.PicklingError("cannot pickle"), "num_workers=0"),
        (AttributeError("Can't pickle local object 'f.<locals>.g'"), "num_workers=0"),
        (PermissionError(errno.EACCES, "Permission denied"), "--work-dir"),
        (OSError(errno.ENOSPC, "No space left on device"), "--work-dir"),
        (OSError(errno.EIO, "Input/output error"), ""),
        (IndexError("Target 7 is out of bounds."), "num_classes"),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."), "worker"),
        (KeyError("name"), ""),
    ],
)
def test_the_advice_fits_the_error(error: Exception, advice: str) -> None:
    given = finding_from_error(error, "training").advice
    assert advice in given
    assert bool(given) == bool(advice)


@pytest.mark.parametrize(
    ("phase", "model_finished", "advice"),
    [
        ("training", False, "input and the samples"),
        ("validation", False, "same shape as those of training"),
        ("training", True, "output and the targets"),
        ("validation", True, "output and the targets"),
    ],
)
def test_the_advice_on_shapes_depends_on_phase_and_progress(
    phase: str, model_finished: bool, advice: str
) -> None:
    error = caught(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
    assert advice in finding_from_error(error, phase, model_finished=model_finished).advice
