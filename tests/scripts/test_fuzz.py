"""The fuzzer: it repeats its cases, survives crashes, and reports findings."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from scripts.fuzz import main, make_case, run_batch
from scripts.fuzzing.targets import TARGETS, Target


def seeds() -> list[bytes]:
    return [b"0123456789" * 5]


def test_a_case_is_determined_by_seed_target_and_number() -> None:
    target = TARGETS["manifest"]
    cases = [make_case("manifest", target, 0, number) for number in range(20)]
    assert cases == [make_case("manifest", target, 0, number) for number in range(20)]
    assert len(set(cases)) > 10
    assert cases != [make_case("manifest", target, 1, number) for number in range(20)]


def fail(path: Path) -> None:
    if path.read_bytes() != seeds()[0]:
        raise KeyError("unexpected")


def crash(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("read", "expected"), [(fail, "KeyError"), (crash, "SIGKILL")], ids=["exception", "crash"]
)
def test_exceptions_and_crashes_are_findings(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    read: object,
    expected: str,
) -> None:
    monkeypatch.setitem(TARGETS, "bad", Target(read, "file", seeds))  # type: ignore[arg-type]
    folder = tmp_path / "findings"
    options = ["--target", "bad", "--cases", "2", "--findings", str(folder)]
    assert main(options) == 1
    assert expected in capsys.readouterr().out
    assert list(folder.iterdir())


def test_a_file_outside_the_directory_must_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def escape(path: Path) -> None:
        (path.parent.parent / "canary").write_text("changed")

    monkeypatch.setitem(TARGETS, "bad", Target(escape, "file", seeds))
    outcomes = run_batch("bad", 0, 0, tmp_path)
    assert outcomes[0].startswith("finding")


def test_manifests_and_indexes_of_shards_have_no_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--cases", "150", "--findings", str(tmp_path)]
    assert main([*options, "--target", "manifest", "--target", "shards"]) == 0
    assert "300 cases" in capsys.readouterr().out
