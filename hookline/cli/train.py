"""`hookline train`: from a config to a trained model, and what came of it."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hookline.cli.arguments import UsageError
from hookline.cli.common import make_runner, options
from hookline.cli.failures import show_mistake
from hookline.cli.output import print_table
from hookline.config import Config, load_config, save_resolved
from hookline.dist import find_launch, started_before, tell_torchrun, torchrun_command
from hookline.engine import Interrupted
from hookline.errors import ConfigError, HooklineError, PeerFailed, Problem
from hookline.events.format import format_scalars
from hookline.hooks import LoggerHook
from hookline.runner import Runner


def run(args: argparse.Namespace) -> int:
    if args.nproc is not None and find_launch() is None:
        return _in_several_processes(args)
    config = load_config(args.config, [*args.overrides, *options(args, "work_dir", "resume", "device")])
    runner = make_runner(config)
    _go_on_after_restart(runner)
    if runner.is_main:
        if args.resume == "auto" and not runner.store.entries():
            print(f"nothing to resume from in {runner.store.directory}: starting from the beginning", file=sys.stderr)
        _save_config(runner, config)
    started = time.monotonic()
    try:
        runner.train()
    except Interrupted as interrupted:
        if runner.is_main:
            if runner.stop_reason is not None:  # it stopped at a seam, with all that it has saved
                _report(runner, started)
            hint = f"; `hookline train {args.config} … --resume` continues" if runner.store.entries() else ""
            print(f"{interrupted}{hint}", file=sys.stderr)
        return 128 + interrupted.signum
    except HooklineError as error:
        if args.debug or not (runner.outputs or isinstance(error, PeerFailed)):  # nothing was trained yet: a mistake like any other
            raise
        show_mistake(error)
        return 1
    except Exception as error:
        tell_torchrun(error)
        raise
    if runner.is_main:
        _report(runner, started)
    return 0


def _go_on_after_restart(runner: Runner) -> None:
    """Where torchrun has started the job anew it goes on from what it has saved, and else begins as it was told to."""
    started = started_before(runner.world)
    if started is None:
        return
    saved = runner.is_main and any(entry.time >= started for entry in runner.store.entries())  # others may be an earlier run's
    if runner.world.main_says("saved" if saved else ""):
        runner.resume = "auto"


def _in_several_processes(args: argparse.Namespace) -> int:
    """Let torchrun start this command in several processes, and end as they do."""
    if args.nproc < 1 or args.max_restarts < 0:
        raise UsageError(f"--nproc must be at least 1 and --max-restarts not negative, got {args.nproc} and {args.max_restarts}")
    given = {"--work-dir": args.work_dir, "--resume": args.resume, "--device": args.device}
    named = [f"{option}={value}" for option, value in given.items() if value is not None]
    command = ["train", args.config, *args.overrides, *named, *(["--debug"] if args.debug else [])]
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // args.nproc))
    launcher = torchrun_command(args.nproc, command, args.max_restarts)
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    # In a session of its own: Ctrl-C on a terminal would reach torchrun twice, and the second one keeps it from waiting for the others.
    with subprocess.Popen(launcher, env=environment, start_new_session=True) as torchrun, _passing_on_signals(torchrun) as passed_on:
        code = torchrun.wait()
    if code and passed_on:
        return 128 + passed_on[0]
    return code if code >= 0 else 128 - code


@contextmanager
def _passing_on_signals(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Whoever ends this command means the processes that it has started; they save and stop. Yields the signals that came."""
    passed_on: list[int] = []

    def pass_on(signum: int, frame: FrameType | None) -> None:
        passed_on.append(signum)
        process.send_signal(signum)

    signals = [signal.SIGINT, signal.SIGTERM] if threading.current_thread() is threading.main_thread() else []
    if signals and hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup has it ignored
        signals.append(signal.SIGHUP)
    before = {signum: signal.signal(signum, pass_on) for signum in signals}
    try:
        yield passed_on
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _save_config(runner: Runner, config: Config) -> None:
    """Beside the results, before there are any. A run that is still going keeps its own: a second one is refused here."""
    try:
        runner.store.lock()
        save_resolved(runner.config, runner.work_dir / "config.yaml")
    except OSError as error:
        raise ConfigError(config.locate(Problem(f"cannot be used: {error.strerror}: {error.filename}", ("work_dir",)))) from error
    finally:
        runner.store.unlock()  # the hook that saves takes it for the run


def _report(runner: Runner, started: float) -> None:
    rows = []
    if not any(isinstance(hook, LoggerHook) for hook in runner.hooks):  # which has said so
        seconds = time.monotonic() - started
        rows.append(("stopped", f"{runner.stop_reason}, after {runner.iter} iterations in {seconds:.1f} s"))
    if runner.metrics:
        rows.append(("last", format_scalars(runner.metrics)))
    for metric, best in runner.best.items():
        rows.append(("best", f"{format_scalars({metric: best['value']})} in epoch {best['epoch'] + 1} (iteration {best['iter']})"))
    checkpoints = [name for entry in runner.store.entries() for name in entry.names]
    rows.append(("files", f"{runner.work_dir}/"))
    rows.append(("checkpoints", f"{', '.join(checkpoints)} in {runner.store.directory}/" if checkpoints else "none"))
    print()
    print_table(rows)
