"""`hookline train`: train a model from a config."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from hookline.checkpoint.adoption import unlisted_files
from hookline.cli.common import make_runner, option_overrides
from hookline.cli.errors import ExitCode, print_error, print_traceback
from hookline.cli.output import only_json, print_json
from hookline.cli.printing import show
from hookline.config import Config, load_config, save_resolved
from hookline.dist import find_launch, first_launch_time, report_to_torchrun, torchrun_command
from hookline.engine import Interrupted
from hookline.errors import ConfigError, HooklineError, PeerFailed, Problem
from hookline.hooks import CheckpointHook, LoggerHook
from hookline.report.ending import align_rows, checkpoint_names, describe_end, describe_stop
from hookline.runner import Runner
from hookline.signals import forward_signals
from hookline.streams import unfailing_output


@unfailing_output()
def run(
    config: str,
    overrides: Sequence[str],
    work_dir: str | None,
    resume: str | None,
    device: str | None,
    nproc: int | None,
    max_restarts: int,
    as_json: bool,
    debug: bool,
) -> int:
    """Train in this process, or in `nproc` processes that torchrun starts."""
    if nproc is not None and find_launch() is None:
        arguments = ["train", config, *overrides]
        for name, value in (("work-dir", work_dir), ("resume", resume), ("device", device)):
            if value is not None:
                arguments.append(f"--{name}={value}")
        if debug:
            arguments.append("--debug")
        if as_json:
            arguments.append("--json")
        return _launch(arguments, nproc, max_restarts)
    with only_json(as_json):
        runner, code = _run_here(config, overrides, work_dir, resume, device, debug)
    if as_json and runner.is_main and runner.stop_reason is not None:
        print_json(_as_dict(runner))
    return code


def _run_here(
    config: str,
    overrides: Sequence[str],
    work_dir: str | None,
    resume: str | None,
    device: str | None,
    debug: bool,
) -> tuple[Runner, int]:
    options = option_overrides(work_dir=work_dir, resume=resume, device=device)
    resolved = load_config(config, [*overrides, *options])
    runner = make_runner(resolved)
    _resume_after_restart(runner)
    if runner.is_main:
        store = runner.checkpointer.store
        directory = store.directory
        has_local = store.entries() or unlisted_files(directory, ())
        if resume == "auto" and not has_local and not _has_mirror(runner):
            show(f"no checkpoint in {directory}: starting a new run", errors=True)
        _save_config(runner, resolved)
    given = [config, *overrides]
    if work_dir is not None:
        given += ["--work-dir", work_dir]
    return runner, _train(runner, shlex.join(given), debug)


def _has_mirror(runner: Runner) -> bool:
    """Return whether a run without local checkpoints may continue from object storage."""
    saving = [hook for hook in runner.hooks if isinstance(hook, CheckpointHook)]
    return any((hook.mirror or runner.work_url) is not None for hook in saving)


def _train(runner: Runner, arguments: str, debug: bool) -> int:
    """Train and print the end of the run; `arguments` are those of a command that follows it."""
    start = time.monotonic()
    try:
        runner.train()
    except Interrupted as interrupted:
        if runner.is_main:
            _print_interruption(runner, interrupted, arguments, time.monotonic() - start)
        return 128 + interrupted.signum
    except HooklineError as error:
        is_mistake = not runner.outputs and not isinstance(error, PeerFailed)
        if is_mistake:  # Nothing was trained: the config or the command line is wrong.
            raise
        if debug:
            print_traceback(error, complete=True)
        else:
            print_error(error)
        return ExitCode.FAILED
    except Exception as error:
        report_to_torchrun(error)
        raise
    if runner.is_main:
        _print_summary(runner, arguments, time.monotonic() - start)
    return ExitCode.OK


def _resume_after_restart(runner: Runner) -> None:
    """Resume a job that torchrun has restarted, if it has saved a checkpoint before."""
    start = first_launch_time(runner.world)
    if start is None:
        return
    saved = False
    if runner.is_main:
        # Older checkpoints belong to an earlier run in the same directory.
        saved = any(entry.time >= start for entry in runner.checkpointer.store.entries())
    if runner.world.broadcast_str("saved" if saved else ""):
        runner.checkpointer.resume = "auto"


def _save_config(runner: Runner, config: Config) -> None:
    """Write config.yaml; raise if another run uses the directory."""
    try:
        runner.checkpointer.store.lock()
        save_resolved(runner.config, runner.work_dir / "config.yaml")
    except OSError as error:
        problem = Problem(f"not usable: {error.strerror}: {error.filename}", ("work_dir",))
        raise ConfigError(config.locate(problem)) from error
    finally:
        runner.checkpointer.store.unlock()  # CheckpointHook locks it for the run.


# Several processes


def _launch(arguments: list[str], nproc: int, max_restarts: int) -> int:
    """Run this command in several processes with torchrun, and return their exit code."""
    environment = dict(os.environ)
    if not environment.get("OMP_NUM_THREADS"):
        cores = os.cpu_count() or 1
        environment["OMP_NUM_THREADS"] = str(max(1, cores // nproc))
    command = torchrun_command(nproc, arguments, max_restarts)
    # In a new session: Ctrl-C in a terminal would reach torchrun twice, and the second signal
    # makes it exit before the processes have saved.
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    with process, forward_signals(process.send_signal) as forwarded:
        code = process.wait()
    if code != 0 and forwarded:
        return 128 + forwarded[0]
    return code if code >= 0 else 128 - code


# The result


def _print_interruption(
    runner: Runner, interrupted: Interrupted, arguments: str, seconds: float
) -> None:
    if runner.stop_reason is not None:  # The run stopped at a seam and has saved.
        _print_summary(runner, arguments, seconds)
    hint = ""
    if runner.checkpointer.store.entries():
        option = "" if runner.checkpointer.resume == "auto" else " with `--resume`"
        hint = f"; the same command{option} continues"
    show(f"{interrupted}{hint}", errors=True)


def _as_dict(runner: Runner) -> dict[str, Any]:
    return {
        "work_dir": str(runner.work_dir),
        "stop_reason": str(runner.stop_reason),
        "epoch": runner.epoch,
        "iter": runner.iter,
        "metrics": dict(runner.metrics),
        "best": {metric: dict(best) for metric, best in runner.best.items()},
        "checkpoints": checkpoint_names(runner),
    }


def _print_summary(runner: Runner, arguments: str, seconds: float) -> None:
    """Print the next command, and without LoggerHook also the results and the files."""
    rows = []
    if not any(isinstance(hook, LoggerHook) for hook in runner.hooks):
        rows = [("stopped", describe_stop(runner, seconds)), *describe_end(runner)]
    if runner.test_loader is not None and checkpoint_names(runner):
        rows.append(("next", f"hookline test {arguments}"))
    for line in align_rows(rows):
        show(line)
