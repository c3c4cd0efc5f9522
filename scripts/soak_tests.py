"""Run the test suite many times, in random orders and partly under load, to find unstable tests.

    python scripts/soak_tests.py --runs 10
    python scripts/soak_tests.py --runs 4 --select tests/optim --load-only

Each run has another order, given by a printed seed: `pytest --order-seed SEED` repeats it. The
second half of the runs (all with `--load-only`) shares the machine with processes that keep every
core and the disk busy. The output of each run is in build/soak/. Exit code 1 if any test failed in
any run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "build" / "soak"
# The load ends with the process that started it, even if that one is killed.
CPU_LOAD = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
DISK_LOAD = """
import os, sys
parent, block = os.getppid(), os.urandom(1 << 20)
while os.getppid() == parent:
    with open(sys.argv[1], "wb") as file:
        for _ in range(32):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
"""


@dataclass
class Run:
    """One run of the suite and its result."""

    number: int
    seed: int
    under_load: bool
    seconds: float = 0.0
    exit_code: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.exit_code == 0 and not self.failures


def main() -> int:
    arguments = parse_arguments()
    LOGS.mkdir(parents=True, exist_ok=True)
    print(f"seed {arguments.seed}; output in {LOGS.relative_to(ROOT)}", flush=True)
    print_row("run", "load", "order seed", "passed", "failed", "skipped", "seconds")
    runs = []
    for run in plan(arguments.runs, arguments.seed, arguments.load_only):
        if run.under_load:
            with machine_load():
                execute(run, arguments.select, arguments.workers)
        else:
            execute(run, arguments.select, arguments.workers)
        runs.append(run)
        print_run(run)
    print_failures(runs)
    return 0 if all(run.is_good for run in runs) else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--select", nargs="+", default=["tests"], help="files or directories")
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 1) + 2)
    parser.add_argument("--load-only", action="store_true", help="put all runs under load")
    parser.add_argument("--seed", type=int, default=None, help="of the seeds of the orders")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1_000_000)
    return arguments


def plan(count: int, seed: int, load_only: bool) -> list[Run]:
    """Return the runs, each with a random order; the second half is under load."""
    generator = random.Random(seed)
    runs = []
    for number in range(1, count + 1):
        under_load = load_only or number > (count + 1) // 2
        runs.append(Run(number, generator.randrange(1_000_000), under_load))
    return runs


@contextlib.contextmanager
def machine_load() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep every core and the disk busy; yield the processes that do."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [[sys.executable, "-c", CPU_LOAD] for _ in range(os.cpu_count() or 1)]
        commands.append([sys.executable, "-c", DISK_LOAD, str(Path(folder) / "load")])
        processes = [subprocess.Popen(command) for command in commands]
        try:
            yield processes
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.wait()


def execute(run: Run, select: list[str], workers: int) -> None:
    """Run the suite once and fill in the result."""
    report = LOGS / f"run_{run.number}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "worksteal"]
    command += ["--order-seed", str(run.seed), f"--junitxml={report}", "-o", "junit_family=xunit1"]
    start = time.perf_counter()
    with open(LOGS / f"run_{run.number}.txt", "wb") as output:
        done = subprocess.run(
            [*command, *select], cwd=ROOT, stdout=output, stderr=output, check=False
        )
    run.seconds = time.perf_counter() - start
    run.exit_code = done.returncode
    if report.exists():
        run.counts, run.failures = read_report(report)


def read_report(path: Path) -> tuple[dict[str, int], list[str]]:
    """Return the number of tests by outcome, and the failed tests, from a JUnit report."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures = []
    for case in ElementTree.parse(path).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            counts["failed"] += 1
            failures.append(f"{case.get('file') or case.get('classname')}::{case.get('name')}")
        elif "skipped" in outcomes:
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts, failures


def print_run(run: Run) -> None:
    cells = [run.counts.get(outcome, "?") for outcome in ("passed", "failed", "skipped")]
    load = "yes" if run.under_load else "no"
    print_row(run.number, load, run.seed, *cells, f"{run.seconds:.0f}")
    if not run.is_good:
        print(f"    exit code {run.exit_code}: see run_{run.number}.txt", flush=True)


def print_row(*cells: object) -> None:
    widths = (4, 5, 11, 8, 7, 8, 8)
    row = [f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    print(" ".join(row), flush=True)


def print_failures(runs: list[Run]) -> None:
    """Print every test that failed in any run, with the runs and their seeds."""
    failed_in: dict[str, list[Run]] = {}
    for run in runs:
        for name in run.failures:
            failed_in.setdefault(name, []).append(run)
    good = sum(run.is_good for run in runs)
    print(f"\n{good} of {len(runs)} runs without a failure; {len(failed_in)} tests failed")
    for name, where in sorted(failed_in.items()):
        cases = ", ".join(f"run {run.number} (order seed {run.seed})" for run in where)
        print(f"{name}\n    {len(where)} of {len(runs)}: {cases}")


if __name__ == "__main__":
    sys.exit(main())
