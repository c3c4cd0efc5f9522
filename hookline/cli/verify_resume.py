"""`hookline verify-resume`: the user's own config, straight and killed again and again, and whether both end the same."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hookline.config import check, load_config
from hookline.errors import HooklineError
from hookline.verify import Chain, compare_runs, run_chain
from hookline.verify.trace import TRAINING

ATTEMPTS = 3  # runs that may come through unharmed before it is clear that this one cannot be killed after a save


def run(args: argparse.Namespace) -> int:
    config = load_config(args.config, args.overrides)
    check(config)
    with tempfile.TemporaryDirectory(prefix="hookline-verify-") as folder:
        keep = Path(args.work_dir) if args.work_dir else Path(folder)
        straight = keep / "straight"
        launcher = Launcher(args.config, args.overrides)
        print(f"straight run in {straight} …", flush=True)
        code = launcher.start(straight).wait()
        if code != 0:
            raise HooklineError(f"the straight run failed with exit code {code}:\n{launcher.output(straight)}")
        seconds = time.time() - (straight / TRAINING).stat().st_mtime
        print(f"trained for {seconds:.1f} s; now killed {args.kills} times …", flush=True)
        return _kill_and_compare(launcher, straight, keep, args.kills, args.seed, seconds)


def _kill_and_compare(launcher: Launcher, straight: Path, keep: Path, kills: int, seed: int, seconds: float) -> int:
    """Kill as often as asked; a run that comes through before is compared, and another one is begun."""
    done, number, unharmed = 0, 0, 0
    # A piece that lives for twice its share of the time gets on, on the average, however many there are.
    span = 2 * seconds / (kills + 1)
    while done < kills:
        number += 1
        pieces = keep / f"killed-{number}"
        result = run_chain(lambda work_dir: launcher.start(work_dir).pid, pieces, Chain(kills - done, span, seed + number))
        if result.failures:
            raise HooklineError(f"{result.failures[0]}:\n{launcher.output(pieces)}")
        print(f"run {number}: killed {result.kills} times after a checkpoint, {result.kills_in_save} of them inside a save", flush=True)
        subjects = compare_runs(straight, pieces)
        done += result.kills
        if any(subjects.values()) or done >= kills:
            return _tell(subjects)
        span /= 2
        unharmed = 0 if result.kills else unharmed + 1
        if unharmed == ATTEMPTS:
            seldom = "it was through before it could be killed after a save: save more often (CheckpointHook's interval)"
            print(f"never resumed from a checkpoint: {seldom}" if not done else f"only {done} kills: {seldom}")
            return 1
    return 0


class Launcher:
    """Starts `hookline train` on a config in a process of its own, with the data traced."""

    def __init__(self, config: str, overrides: list[str]) -> None:
        self._command = [sys.executable, "-m", "hookline", "train", config, *overrides, "resume=auto"]
        self._command.append("+hooks.BatchTraceHook.type=hookline.verify.BatchTraceHook")
        self._running: dict[int, subprocess.Popen[bytes]] = {}  # kept, so that nobody but the chain waits for them

    def start(self, work_dir: Path) -> subprocess.Popen[bytes]:
        work_dir.mkdir(parents=True, exist_ok=True)
        with (work_dir / "output.txt").open("ab") as output:
            process = subprocess.Popen([*self._command, f"work_dir={work_dir}"], stdout=output, stderr=output)
        self._running[process.pid] = process
        return process

    def output(self, work_dir: Path) -> str:
        """The last lines of what the runs in a work directory printed."""
        return "\n".join((work_dir / "output.txt").read_text(errors="replace").splitlines()[-20:])


def _tell(subjects: dict[str, list[str]]) -> int:
    width = max(map(len, subjects))
    for subject, differences in subjects.items():
        rest = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        print(f"{subject:{width}}  {'equal' if not differences else differences[0] + rest}")
    same = not any(subjects.values())
    print("the killed run ended bit-identical to the straight one" if same else "the killed run did NOT end as the straight one did")
    return 0 if same else 1
