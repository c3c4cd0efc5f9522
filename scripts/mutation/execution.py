"""Run tests in processes that are forked from one with torch imported, to save ten seconds each.

Each slot has a copy of the commit, in which one file is changed while its tests run. A failed test
only counts if it passes in the same conditions without the change.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

# Slow imports of the package and its tests. Importing starts no threads, which a fork would lose.
PRELOADED = (
    "hypothesis",
    "matplotlib",
    "numpy",
    "omegaconf",
    "PIL.Image",
    "psutil",
    "rich.console",
    "safetensors.torch",
    "torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.utils.data",
    "torchmetrics",
)
TESTS_FAILED = {1, 2, 3, 4}  # exit codes of pytest: failed, interrupted, internal or usage error
POLL_INTERVAL_S = 0.05


@dataclass(frozen=True)
class Outcome:
    """The end of a test process.

    Attributes:
        status: "passed", "failed", "timeout" or "crashed".
        failed_test: The first failed test, if a test failed.
    """

    status: str
    failed_test: str = ""


def preload() -> None:
    """Import the slow modules, and make sure that the package itself is not imported."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert "hookline" not in sys.modules, "a fork would not see changes of an imported package"


class Slot:
    """A copy of the commit, for one test process at a time."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.tree = folder / "tree"
        self.scratch = folder / "scratch"
        self.failed = folder / "failed_test"
        self.log = folder / "output.txt"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tree, self.tree, ignore=shutil.ignore_patterns("__pycache__"))

    @contextlib.contextmanager
    def changed(self, path: str, text: str) -> Iterator[None]:
        """Replace a file while the context is open."""
        file = self.tree / path
        original = file.read_text(encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(original, encoding="utf-8")

    def run(self, tests: list[str], limit_s: float) -> Generator[None, None, Outcome]:
        """Run tests in a forked process; yield while they run, and return the outcome."""
        self.failed.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        deadline = time.monotonic() + limit_s
        pid = os.fork()
        if pid == 0:
            self._in_child(lambda: self._run_pytest(tests))
        try:
            while (status := self._exit_status(pid)) is None:
                if time.monotonic() > deadline:
                    return Outcome("timeout")
                yield
            return self._outcome(status)
        finally:
            self._end(pid)

    def _exit_status(self, pid: int) -> int | None:
        """Return the exit code of the process, or the negative signal; None while it runs.

        The process is not reaped yet, so that its id still names its group.
        """
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def _outcome(self, status: int) -> Outcome:
        if status == 0:
            return Outcome("passed")
        if status in TESTS_FAILED:
            failed = self.failed.read_text() if self.failed.exists() else ""
            return Outcome("failed", failed)
        if status == int(pytest.ExitCode.NO_TESTS_COLLECTED):
            raise RuntimeError(f"the selected tests were not found: see {self.log}")
        return Outcome("crashed")

    def _end(self, pid: int) -> None:
        """Kill the process and those that it started, and reap it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def _in_child(self, work: Callable[[], int]) -> None:
        code = 3
        try:
            os.setsid()
            output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = work()
        finally:
            os._exit(code)

    def _run_pytest(self, tests: list[str]) -> int:
        # A changed file may keep its size and its time, so cached bytecode could hide the change.
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["PYTHONPATH"] = str(self.tree)
        os.environ["TMPDIR"] = str(self.scratch)
        root = str(Path(__file__).parents[2])
        sys.path[:] = [str(self.tree), *(path for path in sys.path if path not in ("", root))]
        os.chdir(self.tree)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += ["--basetemp", str(self.scratch / "pytest")]
        return int(pytest.main([*files, *options], plugins=[Selection(tests, self.failed)]))


class Selection:
    """A pytest plugin that runs tests in a given order, and records the first failure."""

    def __init__(self, tests: list[str], failed: Path) -> None:
        self.order = {test: index for index, test in enumerate(tests)}
        self.failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        selected = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(selected, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed.exists():
            self.failed.write_text(report.nodeid)
