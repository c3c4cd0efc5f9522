"""Change the code in many small ways, one at a time, and count how many changes the tests notice.

    python -m scripts.mutate --mutants 300
    python -m scripts.mutate --mutants 20 --only hookline/optim --tests tests/optim

The code is that of the last commit, in a copy below build/mutation/. Each mutant runs only against
the tests that execute the changed code. These are measured once for a commit. Results are stored
one by one, so that a second call continues where the first one stopped.
docs/decisions/010-mutation-testing.md has the reasons.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TextIO

from scripts.mutation.covering_tests import CoveringTests
from scripts.mutation.execution import POLL_INTERVAL_S, Outcome, Slot, preload
from scripts.mutation.mutants import Mutant, MutatedFile

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "checkpoint", "data", "optim", "hooks")
BUILD = ROOT / "build" / "mutation"
KILLED = ("failed", "timeout", "crashed")
LIMIT_FACTOR = 5.0
LIMIT_CONSTANT_S = 60.0


@dataclass(frozen=True)
class Result:
    """The outcome of a mutant: "passed" is a survivor, "uncovered" one that no test executes.

    Attributes:
        failed_test: The test that noticed the change; empty if the code could not be imported.
        tests: The number of tests that it ran against.
    """

    key: str
    place: str
    change: str
    status: str
    failed_test: str
    tests: int
    seconds: float


def main() -> int:
    arguments = parse_arguments()
    commit = git("rev-parse", "HEAD").decode().strip()
    warn_if_uncommitted()
    folder = BUILD / commit[:12]
    tree = folder / "tree"
    check_out(commit, tree)
    selection = hashlib.sha256(" ".join(sorted(arguments.tests)).encode()).hexdigest()[:8]
    measured = folder / f"tests_{selection}"
    measured.mkdir(exist_ok=True)

    source = [f"hookline/{package}" for package in PACKAGES]
    covering = CoveringTests(measured, tree)
    print(f"commit {commit[:12]}: which tests execute which lines …", flush=True)
    covering.measure(source, arguments.tests, arguments.workers)
    left_out = [name for name, run in covering.results.items() if not run.passed]
    print(f"{len(covering.results)} tests, {len(left_out)} left out (failed or skipped)")

    mutants = sample(tree, arguments.only or source, arguments.mutants, arguments.seed)
    results_file = measured / "results.jsonl"
    session = Session(covering, tree, arguments.budget, measured, arguments.workers)
    try:
        results = session.run(mutants, results_file)
    except KeyboardInterrupt:
        print("\ninterrupted: the same command continues", file=sys.stderr)
        return 130
    print_summary(results)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300, help="size of the sample")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", nargs="+", help="files or directories to change")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="tests to use")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--budget",
        type=float,
        default=60.0,
        help="seconds of tests for each mutant, as measured without changes (default: 60)",
    )
    return parser.parse_args()


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def warn_if_uncommitted() -> None:
    if git("status", "--porcelain", "--", "hookline", "tests"):
        print("warning: uncommitted changes in hookline or tests are not part of this run")


def check_out(commit: str, tree: Path) -> None:
    """Write the files of a commit, unless that was done before."""
    if tree.exists():
        return
    partial = tree.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(git("archive", commit))) as archive:
        archive.extractall(partial, filter="data")
    partial.rename(tree)


def sample(tree: Path, paths: list[str], count: int, seed: int) -> list[Mutant]:
    """Return a random sample of the mutants of all files below some paths.

    A smaller sample with the same seed and paths is the beginning of a larger one.
    """
    files = {}
    for path in paths:
        found = [tree / path] if path.endswith(".py") else sorted((tree / path).rglob("*.py"))
        for file in found:
            name = file.relative_to(tree).as_posix()
            files[name] = MutatedFile(name, file.read_text(encoding="utf-8"))
    candidates = []
    for name in sorted(files):
        candidates += [(name, index) for index in range(len(files[name]))]
    random.Random(seed).shuffle(candidates)
    mutants: list[Mutant] = []
    for name, index in candidates:
        if len(mutants) == count:
            break
        mutant = files[name].mutant(index)
        if mutant is not None:
            mutants.append(mutant)
    print(f"{len(mutants)} of {len(candidates):,} mutants in {len(files)} files (seed {seed})")
    return mutants


class Session:
    """Runs mutants in parallel, and stores their results.

    Args:
        covering: The tests of each line.
        tree: The checked-out commit.
        budget_s: The seconds of tests that a mutant runs against, as measured without changes.
        folder: The directory of the slots of the test processes.
        workers: The number of slots.
    """

    def __init__(
        self, covering: CoveringTests, tree: Path, budget_s: float, folder: Path, workers: int
    ) -> None:
        self.covering = covering
        self.tree = tree
        self.budget_s = budget_s
        self.folder = folder
        self.workers = workers
        self.verified: set[str] = set()
        self.unusable: set[str] = set()

    def run(self, mutants: list[Mutant], results_file: Path) -> list[Result]:
        """Run the mutants that have no stored result; return the results of all."""
        results = read_results(results_file)
        waiting = [mutant for mutant in mutants if mutant.key not in results]
        print(f"{len(mutants) - len(waiting)} of {len(mutants)} have a stored result", flush=True)
        if waiting:
            for library in ("OMP", "OPENBLAS", "MKL"):
                os.environ[f"{library}_NUM_THREADS"] = "1"
            preload()
            slots = [
                Slot(self.folder / f"slot_{number}", self.tree) for number in range(self.workers)
            ]
            with open(results_file, "a", encoding="utf-8") as file:
                for done, result in enumerate(self._in_parallel(waiting, slots), 1):
                    results[result.key] = result
                    store(file, result)
                    print(f"{done}/{len(waiting)} {result.status:9} {result.place}", flush=True)
        return [results[mutant.key] for mutant in mutants]

    def _in_parallel(self, mutants: list[Mutant], slots: list[Slot]) -> Iterator[Result]:
        """Yield results as they come, with one mutant at a time in each slot."""
        queue = list(reversed(mutants))
        running: dict[int, Generator[None, None, Result]] = {}
        try:
            while queue or running:
                for number, slot in enumerate(slots):
                    if number not in running and queue:
                        running[number] = self._run_one(queue.pop(), slot)
                for number in list(running):
                    try:
                        next(running[number])
                    except StopIteration as end:
                        del running[number]
                        yield end.value
                time.sleep(POLL_INTERVAL_S)
        finally:
            for steps in running.values():
                steps.close()

    def _run_one(self, mutant: Mutant, slot: Slot) -> Generator[None, None, Result]:
        """Test a mutant; yield while the tests run, and return the result."""
        start = time.monotonic()
        source = (self.tree / mutant.path).read_text(encoding="utf-8")
        text = MutatedFile(mutant.path, source).text(mutant.index)
        while True:
            tests = self._tests_of(mutant)
            outcome = Outcome("uncovered")
            if tests:
                seconds = sum(self.covering.results[test].seconds for test in tests)
                with slot.changed(mutant.path, text):
                    outcome = yield from slot.run(tests, LIMIT_CONSTANT_S + LIMIT_FACTOR * seconds)
            if not outcome.failed_test or (yield from self._is_usable(outcome.failed_test, slot)):
                break
        return Result(
            key=mutant.key,
            place=f"{mutant.path}:{mutant.line}",
            change=mutant.change,
            status=outcome.status,
            failed_test=outcome.failed_test,
            tests=len(tests),
            seconds=round(time.monotonic() - start, 1),
        )

    def _is_usable(self, test: str, slot: Slot) -> Generator[None, None, bool]:
        """Return whether a test passes here without a change. If not, it is not used again."""
        if test not in self.verified:
            outcome = yield from slot.run([test], LIMIT_CONSTANT_S)
            if outcome.status != "passed":
                self.unusable.add(test)
                return False
            self.verified.add(test)
        return True

    def _tests_of(self, mutant: Mutant) -> list[str]:
        """Return the covering tests within the budget, at least one."""
        chosen: list[str] = []
        seconds = 0.0
        for test in self.covering.covering(mutant.path, mutant.scope):
            if test in self.unusable:
                continue
            seconds += self.covering.results[test].seconds
            if chosen and seconds > self.budget_s:
                break
            chosen.append(test)
        return chosen


def read_results(path: Path) -> dict[str, Result]:
    if not path.exists():
        return {}
    results = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        result = Result(**json.loads(line))
        results[result.key] = result
    return results


def store(file: TextIO, result: Result) -> None:
    file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
    file.flush()


def print_summary(results: list[Result]) -> None:
    """Print the survivors, then the share of killed mutants, in all and for each package."""
    survivors = [result for result in results if result.status not in KILLED]
    print(f"\n{len(survivors)} survivors")
    for result in sorted(survivors, key=lambda result: result.place):
        note = f"{result.tests} tests"
        if result.status == "uncovered":
            note = "no test executes it in its own process"
        print(f"{result.place} ({note})")
        for line in result.change.splitlines():
            print(f"    {line}")
    packages = sorted({str(Path(result.place).parent) for result in results})
    print()
    for package in packages:
        print_share(package, [r for r in results if str(Path(r.place).parent) == package])
    print_share("all", results)


def print_share(name: str, results: list[Result]) -> None:
    killed = sum(result.status in KILLED for result in results)
    share = killed / len(results) if results else 0.0
    timeouts = sum(result.status == "timeout" for result in results)
    uncovered = sum(result.status == "uncovered" for result in results)
    print(
        f"{name:24} {killed:4} of {len(results):4} killed ({share:.1%}; {timeouts} by timeout), "
        f"{uncovered} not executed"
    )


if __name__ == "__main__":
    sys.exit(main())
