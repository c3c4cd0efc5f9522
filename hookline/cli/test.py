"""`hookline test`: evaluate a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.best_files import find_best_names
from hookline.cli.common import make_runner, option_overrides
from hookline.cli.errors import CommandLineError
from hookline.cli.output import only_json, print_json
from hookline.cli.printing import show
from hookline.config import Config, load_config
from hookline.errors import ConfigError, Problem, Suggestion, suggest
from hookline.events.format import format_scalars
from hookline.hooks import CheckpointHook, EvalHook, LoggerHook, PeriodicWriterHook
from hookline.remote import is_url
from hookline.runner import Runner


def run(
    config: str,
    overrides: Sequence[str],
    checkpoint: str | None,
    split: str,
    work_dir: str | None,
    device: str | None,
    as_json: bool,
) -> int:
    """Evaluate a checkpoint on the test or validation data and print the metrics."""
    options = option_overrides(work_dir=work_dir, device=device)
    resolved = load_config(config, [*overrides, *options])
    with only_json(as_json):
        runner = make_runner(resolved)
        _check_data(runner, split, resolved)
        path = find_checkpoint(runner, checkpoint)
        runner.checkpointer.load_from = path
        remove_writers(runner)
        metrics = runner.test() if split == "test" else runner.validate()
    if as_json:
        print_json({"checkpoint": str(path), "split": split, "metrics": dict(metrics)})
    else:
        show(f"{split} data, {path}\n{format_scalars(metrics)}")
    return 0


def find_checkpoint(runner: Runner, choice: str | None) -> str | Path:
    """Return the file or the URL that `--checkpoint` means.

    Args:
        runner: The runner, whose work directory is searched.
        choice: `best`, `last`, a name, a path or a URL. None means the best checkpoint, or else the
            last one, or else the `load_from` of the config.
    """
    if is_url(choice):
        return str(choice)
    directory = _checkpoint_directory(runner)
    names = {name for entry in CheckpointStore(directory).entries() for name in entry.names}
    best = sorted(find_best_names(names))
    if choice is None:
        if not best and "last.pth" not in names and runner.checkpointer.load_from is not None:
            return runner.checkpointer.load_from
        choice = "best" if best else "last"
    if choice == "best" and len(best) > 1:
        message = f"--checkpoint best: {directory} has several: {', '.join(best)}; name one of them"
        raise CommandLineError(message, parameter="--checkpoint")
    if choice == "best" and best:
        return directory / best[0]
    for name in (choice, f"{choice}.pth"):
        if name in names:
            return directory / name
    if Path(choice).is_file():
        return Path(choice)
    place = "PATH" if runner.work_url is None else f"{runner.work_url}/last.pth"
    suggestion = Suggestion(advice=f"train with `hookline train`, or give --checkpoint {place}")
    if names:
        suggestion = suggest(choice, [*names, "best"] if best else names)
    message = f"no checkpoint {choice!r} in {directory}"
    raise CommandLineError(message, parameter="--checkpoint", suggestion=suggestion)


def _checkpoint_directory(runner: Runner) -> Path:
    for hook in runner.hooks:
        if isinstance(hook, CheckpointHook) and hook.out_dir:
            return Path(hook.out_dir)
    return runner.work_dir


def _check_data(runner: Runner, split: str, config: Config) -> None:
    """Raise ConfigError if there is no data for a split."""
    loaders: dict[str, Any] = {"test": runner.test_loader, "val": runner.val_loader}
    for hook in runner.hooks:
        # EvalHook passes its loaders to the runner when the run begins.
        if isinstance(hook, EvalHook) and hook.dataloader is not None:
            loaders["val"] = hook.dataloader
    if loaders[split] is not None:
        return
    available = [f"--split {other}" for other in loaders if loaders[other] is not None]
    advice = f"use {available[0]}" if available else ""
    problem = Problem(f"no {split} data", ("dataset",), suggestion=Suggestion(advice=advice))
    raise ConfigError(config.locate(problem))


def remove_writers(runner: Runner) -> None:
    """Remove hooks that write files: a training run may be using the same directory."""
    for hook in list(runner.hooks):
        if isinstance(hook, (CheckpointHook, LoggerHook, PeriodicWriterHook)):
            runner.unregister_hook(hook.name)
