"""`hookline export`: write a trained model for other programs, and verify the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hookline.batches import move_each, named_loaders
from hookline.checkpoint import load_whole, local_checkpoint
from hookline.cli.common import make_runner, option_overrides
from hookline.cli.errors import CommandLineError, ExitCode
from hookline.cli.output import only_json, print_json
from hookline.cli.printing import show
from hookline.cli.test import find_checkpoint
from hookline.config import load_config
from hookline.export import FORMATS
from hookline.export.checkpoints import export_checkpoint
from hookline.remote import is_url
from hookline.runner import Runner


def run(
    config: str,
    overrides: Sequence[str],
    checkpoint: str | None,
    formats: Sequence[str],
    output: str | None,
    work_dir: str | None,
    as_json: bool,
) -> int:
    """Export the weights of a checkpoint; the averaged ones if there are any."""
    options = option_overrides(work_dir=work_dir, device="cpu")
    resolved = load_config(config, [*overrides, *options])
    with only_json(as_json):
        runner = make_runner(resolved)
        path = find_checkpoint(runner, checkpoint)
        beside = runner.work_dir if is_url(path) else Path(path).parent
        with local_checkpoint(path) as file:
            files, card = export_checkpoint(
                runner.model,
                load_whole(file),
                file.name,
                _first_batch(runner),
                runner.evaluation.metrics,
                Path(output or beside / "export"),
                formats or FORMATS,
            )
    if as_json:
        shown = {kind: str(file) for kind, file in files.items()}
        print_json({"checkpoint": str(path), "files": shown, "card": str(card)})
    else:
        for file in (*files.values(), card):
            show(file)
    return ExitCode.OK


def _first_batch(runner: Runner) -> Any:
    """Return the first batch of the validation data."""
    loaders = named_loaders(runner.val_loader)
    if not loaders:
        raise CommandLineError("there is no validation data to verify the export with")
    return next(iter(move_each(next(iter(loaders.values())), runner.device)))
