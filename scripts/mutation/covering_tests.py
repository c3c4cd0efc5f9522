"""The tests that execute each line, measured once for a commit with coverage contexts.

Lines that run only in processes that tests start, as in distributed jobs, count as not executed.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from coverage import CoverageData


@dataclass(frozen=True)
class MeasuredTest:
    """The result of one test: its duration, and whether it passed."""

    seconds: float
    passed: bool


class CoveringTests:
    """The tests that execute a line, and their durations.

    Args:
        folder: The directory of the measurement.
        tree: The checked-out commit.
    """

    def __init__(self, folder: Path, tree: Path) -> None:
        self.folder = folder
        self.tree = tree
        self.report = folder / "tests.xml"
        self.data_file = folder / "coverage.sqlite"
        self.tests_by_line: dict[str, dict[int, set[str]]] = {}

    def measure(self, source: list[str], tests: list[str], workers: int) -> None:
        """Run the tests under coverage, unless that was done before."""
        done = self.folder / "measured"
        if done.exists():
            return
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "worksteal"]
        command += [f"--cov={path}" for path in source]
        command += ["--cov-context=test", "--cov-report=", "--cov-config=/dev/null"]
        command += ["--continue-on-collection-errors"]
        command += [f"--junitxml={self.report}", "-o", "junit_family=xunit1"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.tree),
            "COVERAGE_FILE": str(self.data_file),
            "OMP_NUM_THREADS": "1",
        }
        with open(self.folder / "measurement.txt", "wb") as output:
            run = subprocess.run(
                [*command, *tests],
                cwd=self.tree,
                env=environment,
                stdout=output,
                stderr=output,
                check=False,  # failed tests are left out below
            )
        if run.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            raise SystemExit(f"the tests did not run: see {self.folder / 'measurement.txt'}")
        done.touch()

    @functools.cached_property
    def results(self) -> dict[str, MeasuredTest]:
        """The result of each test by its node id."""
        results = {}
        for case in ElementTree.parse(self.report).iter("testcase"):
            outcomes = {child.tag for child in case}
            passed = not outcomes & {"failure", "error", "skipped"}
            results[node_id(case)] = MeasuredTest(float(case.get("time", "0")), passed)
        return results

    def covering(self, path: str, scope: tuple[int, int]) -> list[str]:
        """Return the passing tests that execute any of these lines, the quickest first.

        Lines that run only at import belong to no test. Any test of the file can notice them, or
        any test of the package if the file has none. Tests in the directory that mirrors the
        package come before all others.
        """
        by_line = self._lines_of(path)
        lines = [line for line in range(scope[0], scope[1] + 1) if line in by_line]
        mirror = Path("tests", *Path(path).parts[1:-1]).as_posix() + "/"
        tests = self._passed(by_line, lines)
        if not tests and lines:
            tests = self._passed(by_line, list(by_line))
        if not tests and lines:
            tests = {test for test, run in self.results.items() if run.passed}
            tests = {test for test in tests if test.startswith(mirror)}
        return sorted(
            tests, key=lambda test: (not test.startswith(mirror), self.results[test].seconds, test)
        )

    def _passed(self, by_line: dict[int, set[str]], lines: list[int]) -> set[str]:
        """Return the passing tests of some lines."""
        tests: set[str] = set()
        for line in lines:
            tests |= by_line[line]
        return {test for test in tests if test in self.results and self.results[test].passed}

    def _lines_of(self, path: str) -> dict[int, set[str]]:
        if path not in self.tests_by_line:
            self.tests_by_line[path] = self._read_lines_of(path)
        return self.tests_by_line[path]

    def _read_lines_of(self, path: str) -> dict[int, set[str]]:
        tests = {}
        for line, contexts in self._data.contexts_by_lineno(str(self.tree / path)).items():
            # A context is "NODE_ID|run", "NODE_ID|setup" or "NODE_ID|teardown", or empty at import.
            tests[line] = {context.rpartition("|")[0] for context in contexts if context}
        return tests

    @functools.cached_property
    def _data(self) -> CoverageData:
        data = CoverageData(basename=str(self.data_file))
        data.read()
        return data


def node_id(case: ElementTree.Element) -> str:
    """Return the node id of a test in a JUnit report."""
    file = case.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.get("classname", "").removeprefix(module).strip(".")
    parts = [file, *(name for name in classes.split(".") if name), case.get("name", "")]
    return "::".join(parts)
