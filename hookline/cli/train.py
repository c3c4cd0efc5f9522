"""`hookline train`: from a config to a trained model, and what came of it."""

from __future__ import annotations

import argparse
import sys
import time

from hookline.cli.common import make_runner, options
from hookline.cli.failures import show_mistake
from hookline.cli.output import print_table
from hookline.config import Config, load_config, save_resolved
from hookline.engine import Interrupted
from hookline.errors import ConfigError, HooklineError, Problem
from hookline.events.format import format_scalars
from hookline.runner import Runner


def run(args: argparse.Namespace) -> int:
    config = load_config(args.config, [*args.overrides, *options(args, "work_dir", "resume", "device")])
    runner = make_runner(config)
    _save_config(runner, config)
    started = time.monotonic()
    try:
        runner.train()
    except Interrupted as interrupted:
        if runner.stop_reason is not None:  # it stopped at a seam, with all that it has saved
            _report(runner, started)
        hint = f"; `hookline train {args.config} … --resume` continues" if runner.store.entries() else ""
        print(f"{interrupted}{hint}", file=sys.stderr)
        return 128 + interrupted.signum
    except HooklineError as error:
        if args.debug or not runner.outputs:  # nothing was trained yet: a mistake like any other
            raise
        show_mistake(error)
        return 1
    _report(runner, started)
    return 0


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
    seconds = time.monotonic() - started
    rows = [("stopped", f"{runner.stop_reason}: {runner.epoch} epochs, {runner.iter} iterations, in {seconds:.1f} s")]
    if runner.metrics:
        rows.append(("last", format_scalars(runner.metrics)))
    for metric, best in runner.best.items():
        rows.append(("best", f"{format_scalars({metric: best['value']})} in epoch {best['epoch'] + 1} (iteration {best['iter']})"))
    checkpoints = [name for entry in runner.store.entries() for name in entry.names]
    rows.append(("files", f"{runner.work_dir}/"))
    rows.append(("checkpoints", f"{', '.join(checkpoints)} in {runner.store.directory}/" if checkpoints else "none"))
    print()
    print_table(rows)
