"""`hookline verify-resume`: compare a run that is killed repeatedly with an uninterrupted one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hookline.cli.errors import ExitCode
from hookline.cli.printing import show
from hookline.config import check, load_config
from hookline.errors import HooklineError
from hookline.verify import Chain, compare_runs, run_chain
from hookline.verify.trace import TRAINING

MAX_RUNS_WITHOUT_KILL = 3
SHOWN_OUTPUT_LINES = 20
TRACE_HOOK = "+hooks.BatchTraceHook.type=hookline.verify.BatchTraceHook"


def run(config: str, overrides: Sequence[str], kills: int, seed: int, work_dir: str | None) -> int:
    """Train with and without kills, and print the differences between the results."""
    check(load_config(config, overrides))
    with tempfile.TemporaryDirectory(prefix="hookline-verify-") as temporary:
        directory = Path(work_dir or temporary)
        launcher = Launcher(config, overrides)
        reference = directory / "straight"
        show(f"uninterrupted run in {reference} …", flush=True)
        code = launcher.start(reference).wait()
        if code != 0:
            output = launcher.output(reference)
            raise HooklineError(f"the uninterrupted run failed with exit code {code}:\n{output}")
        seconds = time.time() - (reference / TRAINING).stat().st_mtime
        show(f"trained for {seconds:.1f} s; killing {kills} times …", flush=True)
        return kill_and_compare(launcher, reference, directory, kills, seed, seconds)


class Launcher:
    """Starts `hookline train` with traced data in a new process."""

    def __init__(self, config: str, overrides: Sequence[str]) -> None:
        train = ["train", config, *overrides, "resume=auto", TRACE_HOOK]
        self._command = [sys.executable, "-m", "hookline", *train]
        # Kept: a collected Popen object would wait for a process that the chain waits for.
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, work_dir: Path) -> subprocess.Popen[bytes]:
        """Start a run, which resumes if the work directory has a checkpoint."""
        work_dir.mkdir(parents=True, exist_ok=True)
        with (work_dir / "output.txt").open("ab") as output:
            command = [*self._command, f"work_dir={work_dir}"]
            process = subprocess.Popen(command, stdout=output, stderr=output)
        self._processes.append(process)
        return process

    def output(self, work_dir: Path) -> str:
        """Return the last lines that the runs in a work directory have printed."""
        text = (work_dir / "output.txt").read_text(errors="replace")
        return "\n".join(text.splitlines()[-SHOWN_OUTPUT_LINES:])


def kill_and_compare(
    launcher: Launcher, reference: Path, directory: Path, kills: int, seed: int, seconds: float
) -> int:
    """Kill runs until there were enough kills, and compare each finished run with the reference.

    A run may finish before it was killed often enough. Then another run is started, with
    shorter times between the kills.

    Args:
        launcher: Starts the runs.
        reference: The work directory of the uninterrupted run.
        directory: Holds the killed runs.
        kills: The number of kills after a checkpoint.
        seed: The seed of the random moments.
        seconds: The training time of the uninterrupted run.
    """
    done = 0
    number = 0
    runs_without_kill = 0
    # With twice its share of the time, a piece makes progress on average.
    span = 2 * seconds / (kills + 1)
    while runs_without_kill < MAX_RUNS_WITHOUT_KILL:
        number += 1
        work_dir = directory / f"killed-{number}"
        chain = Chain(kills - done, span, seed + number)
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
        if any(differences.values()) or done >= kills:
            return _print_comparison(differences)
        runs_without_kill = 0 if result.kills else runs_without_kill + 1
        span /= 2
    reached = f"only {done} kills" if done else "the run was never resumed from a checkpoint"
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
