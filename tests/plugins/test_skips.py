from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.skips import ALLOWED, Skip, is_allowed, read_allowed, summary

ROOT = Path(__file__).parents[2]

pytest_plugins = ["pytester"]

TESTS = """
import pytest

def test_passes(): pass

@pytest.mark.skip(reason="no printer")
def test_prints(): pass

@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs one passing and one skipped test under a choice."""
    pytester.makepyfile(test_it=TESTS)

    def run(choice: str) -> pytest.RunResult:
        monkeypatch.setenv("HOOKLINE_SKIPS", choice)
        return pytester.runpytest("-p", "tests.plugins.skips")

    return run


def test_the_last_line_counts_skips_and_reasons(run) -> None:
    result = run("any")
    assert result.ret == pytest.ExitCode.OK
    assert result.outlines[-1] == "1 skipped: 1 × no printer"


@pytest.mark.parametrize("choice", ["listed", "none"])
def test_a_skip_that_is_not_listed_fails_the_run(run, choice: str) -> None:
    result = run(choice)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"SKIP NOT ALLOWED test_it.py: no printer *{choice}*"])


def test_an_unknown_choice_is_refused(run) -> None:
    assert run("some").ret == pytest.ExitCode.USAGE_ERROR


def test_the_summary_counts_each_reason() -> None:
    skips = [Skip("a.py", "no GPU"), Skip("b.py", "no browser"), Skip("c.py", "no GPU")]
    assert summary(skips) == "3 skipped: 2 × no GPU; 1 × no browser"
    assert summary([]) == "0 skipped"


def test_an_entry_allows_its_path_and_reason_only(tmp_path: Path) -> None:
    path = tmp_path / "allowed.txt"
    path.write_text("# why\n\ntests/a.py | clearml is not installed*\n")
    allowed = read_allowed(path)
    assert is_allowed(Skip("tests/a.py", "clearml is not installed: pip install it"), allowed)
    assert not is_allowed(Skip("tests/b.py", "clearml is not installed"), allowed)
    assert not is_allowed(Skip("tests/a.py", "no GPU"), allowed)


def test_every_allowed_skip_names_an_existing_file() -> None:
    missing = [entry.path for entry in read_allowed(ALLOWED) if not list(ROOT.glob(entry.path))]
    assert missing == []


def test_no_allowed_skip_is_covered_by_another_or_allows_any_reason() -> None:
    allowed = read_allowed(ALLOWED)
    for number, entry in enumerate(allowed):
        others = allowed[:number] + allowed[number + 1 :]
        assert not is_allowed(entry, others), entry
        assert not entry.reason.startswith("*"), entry
