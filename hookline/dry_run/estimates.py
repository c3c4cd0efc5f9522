"""Estimates of the time, disk space and memory of the whole run, and warnings about them."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import psutil
import torch

from hookline.dry_run.directories import nearest_existing
from hookline.dry_run.findings import Finding
from hookline.dry_run.loaders import count_batches, list_loaders
from hookline.duration import parse_duration
from hookline.engine import BaseHook, BaseRunner
from hookline.events.format import format_bytes
from hookline.hooks import CheckpointHook, EvalHook, TimeLimitHook
from hookline.optim.groups import by_name

MAX_MEMORY_SHARE = 0.9
MAX_WAITING_SHARE = 0.5
BEST_AND_NEXT = 2  # checkpoints beside those that `max_keep_ckpts` counts

H = TypeVar("H", bound=BaseHook)


@dataclass
class Workload:
    """How much the whole run computes and saves. Taken before anything is shortened.

    Args:
        iterations: The number of iterations, if known.
        validations: The number of validations.
        validation_batches: The batches of one validation.
        saves: The number of saves.
        kept: The largest number of checkpoints on the disk.
        workers: The number of data workers.
        checkpoint_directory: The directory of the checkpoints.
        time_limit: The limit of TimeLimitHook in seconds, if there is one.
    """

    iterations: int | None
    validations: int
    validation_batches: int
    saves: int
    kept: int
    workers: int
    checkpoint_directory: Path
    time_limit: float | None

    @classmethod
    def from_runner(cls, runner: BaseRunner, work_dir: Path) -> Workload:
        """Return the workload of a runner whose results will go to a work directory."""
        evaluation = _find_hook(runner, EvalHook)
        checkpoints = _find_hook(runner, CheckpointHook)
        limit = _find_hook(runner, TimeLimitHook)
        val_loader: Any = runner.val_loader
        if evaluation is not None and evaluation.dataloader is not None:
            val_loader = evaluation.dataloader
        saves = 0
        kept = 0
        directory = work_dir
        if checkpoints is not None:
            saves = _count_actions(checkpoints, runner)
            kept = _count_kept(saves, checkpoints.max_keep_ckpts)
            directory = Path(checkpoints.out_dir or work_dir)
        validations = 0
        if evaluation is not None and val_loader is not None:
            validations = _count_actions(evaluation, runner)
        return cls(
            iterations=runner.max_iters,
            validations=validations,
            validation_batches=count_batches(val_loader) or 0,
            saves=saves,
            kept=kept,
            workers=_count_workers(runner.train_loader),
            checkpoint_directory=directory,
            time_limit=None if limit is None else parse_duration(limit.limit),
        )


def estimate_time(
    workload: Workload, steps: Sequence[float], evaluations: Sequence[float], save_seconds: float
) -> dict[str, float]:
    """Return the seconds of the whole run by purpose; nothing if its length is unknown.

    Args:
        workload: The workload of the run.
        steps: Measured seconds of training steps.
        evaluations: Measured seconds of validation batches.
        save_seconds: Measured seconds of a save.
    """
    if workload.iterations is None or not steps:
        return {}
    seconds = {
        "training": workload.iterations * median(steps),
        "saving": workload.saves * save_seconds,
    }
    if evaluations:
        batches = workload.validations * workload.validation_batches
        seconds["validation"] = batches * median(evaluations)
    return seconds


def check_time(workload: Workload, seconds: float) -> list[Finding]:
    """Warn if TimeLimitHook stops the run before it is finished."""
    if workload.time_limit is None or seconds <= workload.time_limit:
        return []
    limit = workload.time_limit
    text = f"the run takes about {seconds:.0f} s, but TimeLimitHook stops it after {limit:.0f} s"
    advice = "raise the limit, shorten the run, or continue it with --resume"
    return [Finding("warning", "time", text, advice)]


def estimate_disk(workload: Workload, checkpoint_size: int) -> dict[str, int]:
    """Return the bytes of a checkpoint, of all that are kept, and the free bytes."""
    directory = nearest_existing(workload.checkpoint_directory)
    return {
        "checkpoint": checkpoint_size,
        "checkpoints": checkpoint_size * workload.kept,
        "free": shutil.disk_usage(directory).free,
    }


def check_disk(workload: Workload, disk: dict[str, int]) -> list[Finding]:
    """Report an error if the checkpoints do not fit on the disk."""
    if disk["checkpoints"] <= disk["free"]:
        return []
    needed = format_bytes(disk["checkpoints"])
    each = format_bytes(disk["checkpoint"])
    free = format_bytes(disk["free"])
    text = f"{workload.kept} checkpoints of {each} need {needed}, but only {free} are free"
    advice = "lower max_keep_ckpts, or use another disk (out_dir, --work-dir)"
    return [Finding("error", "disk", text, advice)]


def measure_memory(runner: BaseRunner, snapshot_size: int) -> dict[str, int]:
    """Return bytes of weights, gradients, optimizer and snapshot, the peak so far and the total."""
    parameters = list(runner.model.parameters())
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    memory = {
        "weights": _count_bytes([*parameters, *runner.model.buffers()]),
        "gradients": _count_bytes(trained),
        "optimizer": _count_bytes(_optimizer_tensors(runner.optimizer)),
        "snapshot": snapshot_size,
    }
    if runner.device.type == "cuda":
        memory["peak"] = torch.cuda.max_memory_allocated(runner.device)
        memory["total"] = torch.cuda.mem_get_info(runner.device)[1]
    else:
        unit = 1 if sys.platform == "darwin" else 1024
        memory["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        memory["total"] = psutil.virtual_memory().total
    return memory


def check_memory(memory: dict[str, int], workers: int) -> list[Finding]:
    """Warn if a few batches nearly used up the memory."""
    if memory["peak"] <= MAX_MEMORY_SHARE * memory["total"]:
        return []
    peak = format_bytes(memory["peak"])
    total = format_bytes(memory["total"])
    advice = "use a smaller batch"
    if workers:
        advice += ", or fewer data workers"
    return [Finding("warning", "memory", f"a few batches used {peak} of {total}", advice)]


def check_workers(workload: Workload, waiting_share: float) -> list[Finding]:
    """Warn about more data workers than cores, and about long waiting for data."""
    cores = _count_cores()
    workers = workload.workers
    if workers > cores:
        text = f"{workers} data workers for {cores} cores"
        return [Finding("warning", "loader", text, f"set loader.num_workers={cores} or less")]
    if waiting_share > MAX_WAITING_SHARE:
        text = f"{waiting_share:.0%} of an iteration is waiting for data"
        advice = "speed up the data set"
        if workers < cores:
            advice = f"raise loader.num_workers, which is {workers}"
        return [Finding("warning", "loader", text, advice)]
    return []


def _find_hook(runner: BaseRunner, kind: type[H]) -> H | None:
    for hook in runner.hooks:
        if isinstance(hook, kind):
            return hook
    return None


def _count_actions(hook: EvalHook | CheckpointHook, runner: BaseRunner) -> int:
    """Return how often a hook with `interval` and `by_epoch` acts in the whole run."""
    if hook.interval < 1:
        return 0
    total = runner.max_epochs if hook.by_epoch else runner.max_iters
    return (total or 0) // hook.interval


def _count_kept(saves: int, max_kept: int) -> int:
    kept = saves if max_kept < 1 else min(saves, max_kept)
    return kept + BEST_AND_NEXT


def _count_workers(loader: Any) -> int:
    counts = [getattr(each, "num_workers", None) or 0 for each in list_loaders(loader)]
    return max(counts, default=0)


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # the cores that this process may use
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _count_bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _optimizer_tensors(optimizers: Any) -> list[torch.Tensor]:
    tensors: list[torch.Tensor] = []
    for optimizer in by_name(optimizers).values():
        for state in getattr(optimizer, "state", {}).values():
            tensors += [value for value in state.values() if isinstance(value, torch.Tensor)]
    return tensors
