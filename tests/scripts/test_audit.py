from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.audit import CLEAN, NOT_AUDITED, VULNERABLE, judge, probe

GOOD = {"name": "good", "version": "1.0", "vulns": []}
BAD = {
    "name": "bad",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"], "description": "x"}],
}
SKIPPED = {"name": "gone", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "code"),
    [
        ([GOOD] * 20, CLEAN),
        ([GOOD] * 19 + [SKIPPED], CLEAN),
        ([GOOD, SKIPPED], NOT_AUDITED),
        ([SKIPPED] * 20, NOT_AUDITED),
        ([], NOT_AUDITED),
        ([SKIPPED] * 19 + [BAD], VULNERABLE),
    ],
)
def test_the_exit_code_tells_clean_vulnerable_and_not_audited_apart(
    packages: list[dict[str, Any]], code: int
) -> None:
    assert judge({"dependencies": packages}) == code


def test_a_vulnerability_is_printed_with_its_fix(capsys: pytest.CaptureFixture) -> None:
    judge({"dependencies": [BAD]})
    assert "bad 2.0: PYSEC-1, fixed in 2.1" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{}", "[]", "no json"])
def test_an_answer_of_another_form_is_no_answer(content: str, tmp_path: Path) -> None:
    (tmp_path / "answer").write_text(content)
    assert probe((tmp_path / "answer").as_uri())
    assert probe((tmp_path / "missing").as_uri())


def test_an_answer_with_vulnerabilities_is_one(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text('{"vulnerabilities": []}')
    assert probe((tmp_path / "answer").as_uri()) == ""
