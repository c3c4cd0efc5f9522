"""Count the skipped tests and their reasons at the end of a run, and fail on unexpected ones.

The environment variable HOOKLINE_SKIPS chooses what a skip means:

    any (the default)   skips are counted and printed
    listed              a skip that is not in tests/allowed_skips.txt fails the run
    none                any skip fails the run
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ALLOWED = Path(__file__).parents[1] / "allowed_skips.txt"
CHOICES = ("any", "listed", "none")


@dataclass(frozen=True)
class Skip:
    """A skipped test, or a skipped module, and the reason."""

    path: str
    reason: str


def pytest_configure(config: pytest.Config) -> None:
    choice = os.environ.get("HOOKLINE_SKIPS", "any")
    if choice not in CHOICES:
        raise pytest.UsageError(f"HOOKLINE_SKIPS={choice}: choose from {', '.join(CHOICES)}")
    if not hasattr(config, "workerinput"):  # not in an xdist worker, which only sends reports
        config.pluginmanager.register(SkipSummary(choice), "hookline-skips")


class SkipSummary:
    """Collect the skips of a run; print them, and fail the run if some are not allowed."""

    def __init__(self, choice: str, allowed: Path = ALLOWED) -> None:
        self.choice = choice
        self.allowed = read_allowed(allowed)
        self.skips: list[Skip] = []
        self.reporter: pytest.TerminalReporter | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._add(report)

    def _add(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            path = report.nodeid.partition("::")[0]
            self.skips.append(Skip(path, reason_of(report.longrepr)))

    @property
    def refused(self) -> list[Skip]:
        """The skips that fail the run."""
        if self.choice == "any":
            return []
        if self.choice == "none":
            return self.skips
        return [skip for skip in self.skips if not is_allowed(skip, self.allowed)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self.reporter = terminalreporter

    def pytest_unconfigure(self) -> None:
        """Print the summary after pytest's own last line."""
        if self.reporter is None:
            return
        for skip in self.refused:
            self.reporter.write_line(
                f"SKIP NOT ALLOWED {skip.path}: {skip.reason} (HOOKLINE_SKIPS={self.choice})",
                red=True,
            )
        self.reporter.write_line(summary(self.skips))


def summary(skips: list[Skip]) -> str:
    """Return one line with the number of skips and how often each reason occurs."""
    if not skips:
        return "0 skipped"
    reasons = Counter(skip.reason for skip in skips)
    counts = [f"{count} × {reason}" for reason, count in reasons.most_common()]
    return f"{len(skips)} skipped: {'; '.join(counts)}"


def reason_of(longrepr: object) -> str:
    """Return the reason from a skip report, which is a tuple of path, line and reason."""
    reason = longrepr[-1] if isinstance(longrepr, tuple) else longrepr
    return str(reason).removeprefix("Skipped: ")


def read_allowed(path: Path) -> list[Skip]:
    """Read the allowed skips: in each line a path pattern, a bar and a pattern of the reason."""
    allowed = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition("|")
            allowed.append(Skip(pattern.strip(), reason.strip()))
    return allowed


def is_allowed(skip: Skip, allowed: list[Skip]) -> bool:
    return any(
        fnmatchcase(skip.path, entry.path) and fnmatchcase(skip.reason, entry.reason)
        for entry in allowed
    )
