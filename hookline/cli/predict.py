"""`hookline predict`: write the predictions of a checkpoint to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hookline.cli.common import make_runner, option_overrides
from hookline.cli.errors import CommandLineError
from hookline.cli.output import only_json, print_json
from hookline.cli.prediction_files import SUFFIXES, write_predictions
from hookline.cli.printing import show
from hookline.cli.test import find_checkpoint, remove_writers
from hookline.config import load_config
from hookline.errors import ConfigError, Problem


def run(
    config: str,
    overrides: Sequence[str],
    checkpoint: str | None,
    split: str,
    output: str | None,
    work_dir: str | None,
    device: str | None,
    as_json: bool,
) -> int:
    """Predict on the test or validation data, and write the predictions in their order."""
    if output is not None and Path(output).suffix not in SUFFIXES:
        message = f"the file must end in {', '.join(SUFFIXES)}"
        raise CommandLineError(message, parameter="--output", value=output)
    options = option_overrides(work_dir=work_dir, device=device)
    with only_json(as_json):
        resolved = load_config(config, [*overrides, *options])
        runner = make_runner(resolved)
        loader = runner.test_loader if split == "test" else runner.val_loader
        if loader is None:
            raise ConfigError(resolved.locate(Problem(f"no {split} data", ("dataset",))))
        path = find_checkpoint(runner, checkpoint)
        runner.checkpointer.load_from = path
        remove_writers(runner)
        predictions = runner.predict(loader)
    target = Path(output or runner.work_dir / f"predictions_{split}.pt")
    if runner.is_main:
        write_predictions(predictions, target)
        about = {"checkpoint": str(path), "split": split, "file": str(target)}
        if as_json:
            print_json({**about, "samples": len(predictions)})
        else:
            show(f"{target}: {len(predictions)} predictions of {path} for the {split} data")
    return 0
