"""`hookline predict`: write the predictions of a checkpoint to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hookline.cli.common import make_runner, option_overrides
from hookline.cli.errors import CommandLineError
from hookline.cli.output import only_json, print_json
from hookline.cli.printing import show
from hookline.cli.test import find_checkpoint, remove_writers
from hookline.config import load_config
from hookline.errors import ConfigError, Problem

SUFFIXES = (".pt", ".npy")


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
        message = f"the file must end in {' or '.join(SUFFIXES)}"
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
        _write(predictions, target)
        about = {"checkpoint": str(path), "split": split, "file": str(target)}
        if as_json:
            print_json({**about, "samples": len(predictions)})
        else:
            show(f"{target}: {len(predictions)} predictions of {path} for the {split} data")
    return 0


def _write(predictions: Any, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".pt":
            torch.save(predictions, target)
        else:
            np.save(target, _as_array(predictions))
    except OSError as error:
        reason = error.strerror or error
        raise CommandLineError(f"cannot write {target}: {reason}", parameter="--output") from error


def _as_array(predictions: Any) -> np.ndarray[Any, Any]:
    if not isinstance(predictions, torch.Tensor):
        message = "predictions of different shapes cannot be an array; choose a file .pt"
        raise CommandLineError(message, parameter="--output")
    return predictions.float().numpy() if predictions.is_floating_point() else predictions.numpy()
