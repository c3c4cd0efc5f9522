"""Fuzz the files that Hookline reads: checkpoints, manifests, indexes of shards, logs and configs.

    python -m scripts.fuzz [--seconds 600] [--seed 0] [--target NAME …] [--findings DIRECTORY]
    python -m scripts.fuzz --cases 1000     as many of each target, whatever time they take
    python -m scripts.fuzz --seed 0 --case TARGET:NUMBER

The targets take turns. A case is determined by the seed, its target and its number. Cases run in
forked processes, so that a crash or a hang is a finding and does not end the fuzzer. Exit code 1 if
there are findings; their files are kept, and `--case` runs one again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import logging
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hookline.errors import HooklineError
from scripts.fuzzing.targets import TARGETS, Target

BATCH = 100  # cases of one forked process
TURN_S = 5  # for each target
CASE_LIMIT_CPU_S = 20  # of work: other processes may keep the machine busy
CASE_LIMIT_S = 600  # of waiting
MEMORY_LIMIT_BYTES = 8 << 30


@dataclass
class Results:
    """The number of cases of each target, and the findings by their text."""

    cases: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    findings: dict[str, str] = field(default_factory=dict)


def make_case(name: str, target: Target, seed: int, number: int) -> bytes:
    """Return the content of a case."""
    digest = hashlib.sha256(f"{seed}:{name}:{number}".encode()).digest()
    choose = random.Random(digest)
    data = choose.choice(target.seeds())
    return choose.choice(target.mutations)(data, choose)


def run_case(target: Target, data: bytes, folder: Path) -> str:
    """Run one case and return its outcome: accepted, rejected, or a finding."""
    folder.mkdir(parents=True, exist_ok=True)
    canary = folder.parent / "canary"
    canary.write_text("untouched")
    path = folder / target.file
    path.write_bytes(data)
    outcome = "accepted"
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            target.read(path)
    except HooklineError:
        outcome = "rejected"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        location = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
        outcome = f"finding: {type(error).__name__} in {location}: {str(error)[:100]}"
    if canary.read_text() != "untouched":
        outcome = "finding: a file outside the directory was changed"
    shutil.rmtree(folder)
    return outcome


def run_batch(
    name: str, seed: int, first: int, work: Path, deadline: float = math.inf, count: int = BATCH
) -> list[str]:
    """Run cases in a forked process and return their outcomes."""
    target = TARGETS[name]
    progress = work / "progress.txt"
    progress.write_text("")
    child = os.fork()
    if child == 0:
        logging.disable(logging.CRITICAL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
        with open(progress, "a", encoding="utf-8") as file:
            for number in range(first, first + count):
                if time.monotonic() > deadline:
                    break
                # The default action of both signals ends the process.
                signal.setitimer(signal.ITIMER_PROF, CASE_LIMIT_CPU_S)
                signal.alarm(CASE_LIMIT_S)
                outcome = run_case(target, make_case(name, target, seed, number), work / "case")
                file.write(outcome.replace("\n", " ") + "\n")
                file.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    outcomes = progress.read_text(encoding="utf-8").split("\n")[:-1]
    if status:
        signum = status & 127
        how = signal.Signals(signum).name if signum else f"exit code {status >> 8}"
        outcomes.append(f"finding: the process ended with {how}")
    return outcomes


def fuzz(names: list[str], seconds: float, seed: int, findings: Path) -> Results:
    """Let the targets take turns until the time is over."""
    results = Results()
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        while time.monotonic() < deadline:
            for name in names:
                first = results.cases[name]
                end_of_turn = min(deadline, time.monotonic() + TURN_S)
                outcomes = run_batch(name, seed, first, Path(folder), end_of_turn)
                record_all(results, name, outcomes, seed, findings)
    return results


def fuzz_cases(names: list[str], count: int, seed: int, findings: Path) -> Results:
    """Run the first cases of each target."""
    results = Results()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for name in names:
            while (left := count - results.cases[name]) > 0:
                first = results.cases[name]
                outcomes = run_batch(name, seed, first, Path(folder), count=min(left, BATCH))
                record_all(results, name, outcomes, seed, findings)
    return results


def record_all(results: Results, name: str, outcomes: list[str], seed: int, findings: Path) -> None:
    """Record the outcomes of the next cases of a target."""
    for number, outcome in enumerate(outcomes, start=results.cases[name]):
        record(results, name, number, outcome, seed, findings)


def record(
    results: Results, name: str, number: int, outcome: str, seed: int, findings: Path
) -> None:
    """Count a case, and keep the file of a finding that is new."""
    results.cases[name] += 1
    if outcome == "rejected":
        results.rejected[name] += 1
    text = f"{name}: {outcome.removeprefix('finding: ')}"
    if not outcome.startswith("finding") or text in results.findings:
        return
    results.findings[text] = f"{name}:{number}"
    print(f"{text}  (--seed {seed} --case '{name}:{number}')", flush=True)
    findings.mkdir(parents=True, exist_ok=True)
    file = findings / f"{name.replace(' ', '-')}-{seed}-{number}"
    file.write_bytes(make_case(name, TARGETS[name], seed, number))


def main(arguments: list[str] | None = None) -> int:
    args = parse_arguments(arguments)
    if args.case:
        name, _, number = args.case.rpartition(":")
        target = TARGETS[name]
        data = make_case(name, target, args.seed, int(number))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / target.file
            path.write_bytes(data)
            target.read(path)
        return 0
    names = args.target or list(TARGETS)
    started = time.monotonic()
    if args.cases is None:
        results = fuzz(names, args.seconds, args.seed, args.findings)
    else:
        results = fuzz_cases(names, args.cases, args.seed, args.findings)
    for name in names:
        print(f"{name:20} {results.cases[name]:8,} cases, {results.rejected[name]:8,} rejected")
    total = sum(results.cases.values())
    seconds = time.monotonic() - started
    print(f"{total:,} cases in {seconds:.0f} s, {len(results.findings)} findings")
    return 1 if results.findings else 0


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cases", type=int, help="of each target, in place of a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=list(TARGETS))
    parser.add_argument("--case", help="run one case again, with its traceback: 'manifest:17'")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
