"""`hookline verify-resume`: compare a run that is killed repeatedly with an uninterrupted one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hookline.cli.errors import ExitCode
from hookline.cli.output import only_json, print_json
from hookline.cli.printing import show
from hookline.config import check, load_config
from hookline.errors import HooklineError
from hookline.trial import ENVIRONMENT_VARIABLE
from hookline.verify import Chain, compare_runs, run_chain
from hookline.verify.chain import has_saved
from hookline.verify.trace import STARTED, read_start

MAX_RUNS_WITHOUT_KILL = 3
SHOWN_OUTPUT_LINES = 20


class Outcome(NamedTuple):
    """The kills of a verification, and the differences by subject; None if there was no resume."""

    kills: int
    kills_in_save: int
    differences: dict[str, list[str]] | None


def run(
    target: str,
    arguments: Sequence[str],
    kills: int,
    seed: int,
    work_dir: str | None,
    as_json: bool,
) -> int:
    """Train with and without kills, and print the differences between the results.

    Args:
        target: A config, or a Python script that trains with Runner or `drive`.
        arguments: Overrides of the config, or arguments of the script.
        kills: The number of kills after a checkpoint.
        seed: The seed of the times of the kills.
        work_dir: The directory for both runs; a temporary one by default.
        as_json: Print the result as JSON, and the progress to standard error.
    """
    with only_json(as_json):
        outcome = verify(target, arguments, kills, seed, work_dir)
        code = _print_outcome(outcome)
    if as_json:
        print_json({**outcome._asdict(), "equal": code == ExitCode.OK})
    return code


def verify(
    target: str, arguments: Sequence[str], kills: int, seed: int, work_dir: str | None
) -> Outcome:
    """Train with and without kills, and compare the results, see `run`."""
    if is_script(target):
        launcher = Launcher([target, *arguments])
    else:
        check(load_config(target, arguments))
        # Also in the config, because other values may refer to the work directory.
        launcher = Launcher(["-m", "hookline", "train", target, *arguments, "work_dir={work_dir}"])
    with tempfile.TemporaryDirectory(prefix="hookline-verify-") as temporary:
        directory = Path(work_dir or temporary).absolute()
        reference = directory / "straight"
        show(f"uninterrupted run in {reference} …", flush=True)
        seconds = run_uninterrupted(launcher, reference)
        show(f"trained for {seconds:.1f} s; killing {kills} times …", flush=True)
        return kill_and_compare(launcher, reference, directory, kills, seed, seconds)


def is_script(target: str) -> bool:
    """Return whether the target is a Python script; raise if that script does not exist."""
    if not target.endswith(".py"):
        return False
    if not Path(target).is_file():
        raise HooklineError(f"there is no script {target!r}", parameter="target", value=target)
    return True


def run_uninterrupted(launcher: Launcher, work_dir: Path) -> float:
    """Run to the end and return the seconds of training; raise if there is nothing to verify."""
    if work_dir.exists() and any(work_dir.iterdir()):
        raise HooklineError(
            f"{work_dir} is not empty, and the uninterrupted run would resume there: choose "
            "another --work-dir",
            parameter="--work-dir",
            value=str(work_dir.parent),
        )
    code = launcher.start(work_dir).wait()
    output = launcher.output(work_dir)
    if code != 0:
        raise HooklineError(f"the uninterrupted run failed with exit code {code}:\n{output}")
    if read_start(work_dir) is None:
        raise HooklineError(
            "the script ended without training: it must call Runner(…).train(), or enter "
            f"drive(…), in its own process\n{output}",
            parameter="target",
        )
    seconds = time.time() - (work_dir / STARTED).stat().st_mtime
    if not has_saved(work_dir):
        raise HooklineError(
            "the uninterrupted run saved no checkpoint to resume from: give it a CheckpointHook "
            f"without out_dir, or lower its interval\n{output}",
            component="CheckpointHook",
        )
    return seconds


class Launcher:
    """A launcher of Python processes that get their work directory from the environment.

    Args:
        arguments: The arguments of Python; `{work_dir}` stands for the work directory.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        # Kept, because a garbage-collected Popen would reap a process that the chain waits for.
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, work_dir: Path) -> subprocess.Popen[bytes]:
        """Start a run, which resumes if the work directory has a checkpoint."""
        work_dir.mkdir(parents=True, exist_ok=True)
        command = [sys.executable]
        command += [each.replace("{work_dir}", str(work_dir)) for each in self._arguments]
        with (work_dir / "output.txt").open("ab") as output:
            environment = {**os.environ, ENVIRONMENT_VARIABLE: str(work_dir)}
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        self._processes.append(process)
        return process

    def output(self, work_dir: Path) -> str:
        """Return the last lines that the runs in a work directory have printed."""
        text = (work_dir / "output.txt").read_text(errors="replace")
        return "\n".join(text.splitlines()[-SHOWN_OUTPUT_LINES:])


def kill_and_compare(
    launcher: Launcher, reference: Path, directory: Path, kills: int, seed: int, seconds: float
) -> Outcome:
    """Kill runs until there were enough kills, and compare each finished run with the reference.

    A run may finish before it was killed often enough. Then another run is started, with
    shorter times between the kills.

    Args:
        launcher: Starts the runs.
        reference: The work directory of the uninterrupted run.
        directory: Holds the killed runs.
        kills: The number of kills after a checkpoint.
        seed: The seed of the times of the kills.
        seconds: The training time of the uninterrupted run.
    """
    done = 0
    done_in_save = 0
    number = 0
    runs_without_kill = 0
    # Twice the share of the time, so that a run makes progress on average before it is killed.
    span = 2 * seconds / (kills + 1)
    while runs_without_kill < MAX_RUNS_WITHOUT_KILL:
        number += 1
        work_dir = directory / f"killed-{number}"
        share_in_save = (kills // 2 - done_in_save) / (kills - done)
        chain = Chain(kills - done, span, seed + number, in_save=share_in_save)
        result = run_chain(lambda path: launcher.start(path).pid, work_dir, chain)
        if result.failures:
            raise HooklineError(f"{result.failures[0]}:\n{launcher.output(work_dir)}")
        show(
            f"run {number}: {result.kills} kills after a checkpoint, "
            f"{result.kills_in_save} of them during a save",
            flush=True,
        )
        differences = compare_runs(reference, work_dir)
        done += result.kills
        done_in_save += result.kills_in_save
        if any(differences.values()) or done >= kills:
            return Outcome(done, done_in_save, differences)
        runs_without_kill = 0 if result.kills else runs_without_kill + 1
        span /= 2
    return Outcome(done, done_in_save, None)


def _print_outcome(outcome: Outcome) -> int:
    if outcome.differences is not None:
        in_save = outcome.kills_in_save
        show(f"killed {outcome.kills} times, {in_save} of them during a save")
        return _print_comparison(outcome.differences)
    reached = "the run was never resumed from a checkpoint"
    if outcome.kills:
        reached = f"only {outcome.kills} kills"
    show(f"{reached}: it ended too soon after its saves; lower the interval of CheckpointHook")
    return ExitCode.FAILED


def _print_comparison(differences: dict[str, list[str]]) -> int:
    width = max(len(subject) for subject in differences)
    for subject, texts in differences.items():
        summary = "equal"
        if texts:
            summary = texts[0]
        if len(texts) > 1:
            summary += f" (and {len(texts) - 1} more)"
        show(f"{subject:{width}}  {summary}")
    if any(differences.values()):
        show("the killed run differs from the uninterrupted one")
        return ExitCode.FAILED
    show("the killed run is bit-identical to the uninterrupted one")
    return ExitCode.OK
