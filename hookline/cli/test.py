"""`hookline test`: how good a checkpoint is."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from hookline.checkpoint import CheckpointStore
from hookline.cli.common import make_runner, options
from hookline.cli.output import print_json
from hookline.config import Config, load_config
from hookline.errors import ConfigError, HooklineError, Problem, suggest
from hookline.events.format import format_scalars
from hookline.hooks import CheckpointHook, EvalHook, LoggerHook, PeriodicWriterHook
from hookline.runner import Runner


def run(args: argparse.Namespace) -> int:
    config = load_config(args.config, [*args.overrides, *options(args, "work_dir", "device")])
    # A JSON document stands alone on standard output, whatever hooks, models and data print.
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        runner = make_runner(config)
        _check_data(runner, args.split, config)
        runner.load_from = path = _find_checkpoint(args.checkpoint, runner)
        _remove_writers(runner)
        metrics = runner.test() if args.split == "test" else runner.validate()
    if args.json:
        print_json({"checkpoint": str(path), "split": args.split, "metrics": dict(metrics)})
    else:
        print(f"{args.split} data, {path}\n{format_scalars(metrics)}")
    return 0


def _check_data(runner: Runner, split: str, config: Config) -> None:
    own = next((hook.dataloader for hook in runner.hooks if isinstance(hook, EvalHook)), None)  # it brings them when the run begins
    loaders = {"test": runner.test_loader, "val": runner.val_loader if own is None else own}
    if loaders[split] is None:
        others = [f"--split {other} is possible" for other, loader in loaders.items() if loader is not None]
        raise ConfigError(config.locate(Problem("; ".join([f"there is no {split} data", *others]), ("dataset",))))


def _find_checkpoint(which: str | None, runner: Runner) -> Path:
    """The file that `--checkpoint` means; without it the best one, or else the last, or else what the config starts from."""
    directory = next((Path(hook.out_dir) for hook in runner.hooks if isinstance(hook, CheckpointHook) and hook.out_dir), runner.work_dir)
    names = {name for entry in CheckpointStore(directory).entries() for name in entry.names}
    best = sorted(name for name in names if name.startswith("best_"))
    if which is None:
        which = "best" if best else "last"
        if which == "last" and "last.pth" not in names and runner.load_from is not None:
            return Path(runner.load_from)
    if which == "best" and len(best) > 1:
        raise HooklineError(f"--checkpoint best: there are several in {directory}: {', '.join(best)}; name one of them")
    named = {"best": best[0]} if best else {}
    name = named.get(which) or next((name for name in (which, f"{which}.pth") if name in names), None)
    if name is not None:
        return directory / name
    if Path(which).is_file():
        return Path(which)
    hint = suggest(which, [*names, *named]) if names else "; `hookline train` makes some there, --checkpoint PATH names another"
    raise HooklineError(f"there is no checkpoint {which!r} in {directory}{hint}")


def _remove_writers(runner: Runner) -> None:
    """Testing leaves no files, and may be done beside a training run in the same directory."""
    for hook in list(runner.hooks):
        if isinstance(hook, (CheckpointHook, LoggerHook, PeriodicWriterHook)):
            runner.unregister_hook(hook.name)
