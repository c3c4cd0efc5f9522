from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_sizes import main

TABLE = '[tool.hookline.sizes."package"]\nlines = 10\nfiles = 2\nlines_per_file = 6\n'


def project(root: Path, *lines: int, settings: str = "") -> Path:
    (root / "pyproject.toml").write_text(TABLE + settings)
    (root / "package").mkdir()
    for number, count in enumerate(lines):
        (root / "package" / f"part_{number}.py").write_text("x = 1\n" * count)
    return root


def test_a_directory_at_its_limits_passes(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(project(tmp_path, 4, 6)) == 0
    assert "2 files (limit 2), 10 lines (limit 10), largest part_1.py with 6 (limit 6)" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("lines", [(5, 6), (1, 1, 1), (7,)], ids=["lines", "files", "one file"])
def test_each_limit_fails_when_it_is_exceeded(tmp_path: Path, lines: tuple[int, ...]) -> None:
    assert main(project(tmp_path, *lines)) == 1


def test_a_limit_that_is_not_enforced_is_only_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(project(tmp_path, 11, settings="enforced = false\n")) == 0
    assert "11 lines, 1 too many (not enforced yet)" in capsys.readouterr().out
