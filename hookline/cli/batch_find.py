"""`hookline batch-find`: find the largest batch that fits into the memory of the GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import torch

from hookline.cli.common import make_runner
from hookline.cli.errors import CommandLineError, ExitCode
from hookline.cli.output import only_json, print_json
from hookline.cli.printing import show
from hookline.config import load_config
from hookline.hooks import EMAHook
from hookline.optim.batch_size import find_largest
from hookline.runner import Runner

ITERATIONS = 2  # The first step of an optimizer allocates its state.
DEFAULT_LIMIT = 65536
WHOLE_EPOCHS = ("+training.max_train_batches=null", "+training.overfit_batches=null")


def run(
    config: str, overrides: Sequence[str], device: str | None, limit: int | None, as_json: bool
) -> int:
    """Print the largest batch size that trains, and how to keep the configured one."""
    settings = [*overrides, *WHOLE_EPOCHS, "resume=null"]
    if device is not None:
        settings.append(f"device={device}")
    with only_json(as_json):
        configured, samples = _read_sizes(config, settings, limit)
        most = min(limit or DEFAULT_LIMIT, samples)
        tried = find_largest(lambda size: _fits(config, settings, size), configured, most)
    largest = max((size for size, fits in tried.items() if fits), default=0)
    if as_json:
        tries = [{"batch_size": size, "fits": fits} for size, fits in tried.items()]
        print_json({"configured": configured, "largest": largest or None, "tried": tries})
    else:
        _print_result(configured, largest, tried)
    return ExitCode.OK if largest else ExitCode.FAILED


def _read_sizes(config: str, settings: Sequence[str], limit: int | None) -> tuple[int, int]:
    """Return the configured batch size and the number of training samples."""
    runner = make_runner(load_config(config, settings))
    if runner.device.type != "cuda" and limit is None:
        raise CommandLineError(
            "on a CPU, a process that runs out of memory is killed: give --max N, or --device cuda",
            parameter="--max",
        )
    loader: Any = runner.train_loader
    try:
        return loader.sampler.batch_size, len(loader.dataset)
    except (AttributeError, TypeError) as error:
        message = "the training data has no length, so its batch size cannot be searched"
        raise CommandLineError(message, parameter="loader") from error


def _fits(config: str, settings: Sequence[str], size: int) -> bool:
    """Return whether a few iterations with this batch size fit into memory."""
    show(f"trying {size} samples …", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        changes = [f"+loader.train.batch_size={size}", f"work_dir={folder}"]
        runner = make_runner(load_config(config, [*settings, *changes]))
        try:
            _train(runner)
        except torch.OutOfMemoryError:
            return False
        finally:
            del runner  # Frees its memory before the next try.
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
    return True


def _train(runner: Runner) -> None:
    """Train a few iterations; only hooks that use memory in a step are kept."""
    for hook in list(runner.hooks):
        has_part = hook.site_method("optimize") is not None or isinstance(hook, EMAHook)
        if not has_part:
            runner.unregister_hook(hook.name)
    runner.val_loader = None
    runner.train(max_iters=ITERATIONS)


def _print_result(configured: int, largest: int, tried: dict[int, bool]) -> None:
    if not largest:
        show("not even a single sample fits into memory")
        return
    too_large = min((size for size, fits in tried.items() if not fits), default=None)
    more = "" if too_large is None else f"; {too_large} samples do not fit"
    show(f"largest batch that fits: {largest} samples{more}")
    if configured <= largest:
        show(f"the batch of the config, {configured} samples, fits")
        return
    show(f"the batch of the config has {configured} samples; to train with it, in parts that fit,")
    show("add {type: MicroBatchHook} to hooks: the gradients are those of the whole batch")
