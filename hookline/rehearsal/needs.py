"""What the whole run will need: time, disk, memory."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import torch

from hookline.duration import parse_duration
from hookline.engine import BaseRunner
from hookline.rehearsal.few import each_loader, length
from hookline.rehearsal.findings import Finding
from hookline.rehearsal.places import existing

ALMOST = 0.9  # of the memory


@dataclass
class Plan:
    """How long the run is, how often it validates and saves; taken before anything is shortened."""

    iterations: int | None
    validations: int
    validation_batches: int
    saves: int
    kept: int
    workers: int
    checkpoint_folder: Path
    time_limit: float | None

    @classmethod
    def of(cls, runner: BaseRunner) -> Plan:
        hooks = {type(hook).__name__: hook for hook in runner.hooks}
        evaluates, saves = hooks.get("EvalHook"), hooks.get("CheckpointHook")
        loader: Any = runner.val_loader if getattr(evaluates, "dataloader", None) is None else evaluates.dataloader  # type: ignore[union-attr]
        most = getattr(saves, "max_keep_ckpts", 0)
        count = _times(saves, runner)
        limit = getattr(hooks.get("TimeLimitHook"), "limit", None)
        return cls(
            iterations=runner.max_iters,
            validations=_times(evaluates, runner) if loader is not None else 0,
            validation_batches=length(loader) or 0,
            saves=count,
            kept=(count if most < 1 else min(most, count)) + 2 if saves is not None else 0,  # the best, and the one being written
            workers=max((getattr(each, "num_workers", 0) or 0 for each in each_loader(runner.train_loader)), default=0),
            checkpoint_folder=Path(getattr(saves, "out_dir", None) or runner.work_dir),
            time_limit=None if limit is None else parse_duration(limit),
        )


def _times(hook: Any, runner: BaseRunner) -> int:
    """How often a hook with `interval` and `by_epoch` acts in the whole run."""
    interval = getattr(hook, "interval", 0)
    whole = runner.max_epochs if getattr(hook, "by_epoch", True) else runner.max_iters
    return (whole or 0) // interval if hook is not None and interval > 0 else 0


def time_needed(plan: Plan, steps: list[float], evaluations: list[float], save_seconds: float) -> dict[str, float]:
    """Seconds by what they are for; nothing where the length is not known."""
    if plan.iterations is None or not steps:
        return {}
    needed = {"training": plan.iterations * median(steps), "saving": plan.saves * save_seconds}
    if evaluations:
        needed["validation"] = plan.validations * plan.validation_batches * median(evaluations)
    return needed


def check_time(plan: Plan, seconds: float) -> list[Finding]:
    if plan.time_limit is None or seconds <= plan.time_limit:
        return []
    text = f"the run would take about {seconds:.0f} s, and TimeLimitHook ends it after {plan.time_limit:.0f} s"
    return [Finding("warning", "time", text, "a longer limit, or a shorter run; with --resume it can be continued")]


def check_disk(plan: Plan, size: int, folder: Path) -> tuple[list[Finding], dict[str, int]]:
    """Checkpoints of this size against the free space."""
    free = shutil.disk_usage(existing(folder)).free
    about = {"checkpoint": size, "checkpoints": size * plan.kept, "free": free}
    if about["checkpoints"] <= free:
        return [], about
    text = f"checkpoints need {readable(about['checkpoints'])} ({plan.kept} of {readable(size)}), and {folder} has {readable(free)} free"
    return [Finding("error", "disk", text, "a smaller max_keep_ckpts or a longer interval, or another disk (out_dir, --work-dir)")], about


def memory_needed(runner: BaseRunner, snapshot: int) -> dict[str, int]:
    """Bytes: what model, gradients and optimizer take, a checkpoint's snapshot, and the peak that was seen."""
    parameters = list(runner.model.parameters())
    weights = sum(value.numel() * value.element_size() for value in (*parameters, *runner.model.buffers()))
    gradients = sum(value.numel() * value.element_size() for value in parameters if value.requires_grad)
    states = runner.optimizer.state.values() if isinstance(runner.optimizer, torch.optim.Optimizer) else []
    optimizer = sum(item.numel() * item.element_size() for state in states for item in state.values() if isinstance(item, torch.Tensor))
    needed = {"weights": weights, "gradients": gradients, "optimizer": optimizer, "snapshot": snapshot}
    if runner.device.type == "cuda":
        return {**needed, "peak": torch.cuda.max_memory_allocated(runner.device), "there": torch.cuda.mem_get_info(runner.device)[1]}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {**needed, "peak": peak, "there": psutil.virtual_memory().total}


def check_memory(memory: dict[str, int], workers: int) -> list[Finding]:
    if memory["peak"] <= ALMOST * memory["there"]:
        return []
    text = f"the peak was {readable(memory['peak'])} of {readable(memory['there'])} in three batches"
    return [Finding("warning", "memory", text, "a smaller batch" + (", or fewer data workers" if workers else ""))]


def check_workers(plan: Plan, data_share: float) -> list[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if plan.workers > cores:
        return [Finding("warning", "loader", f"{plan.workers} data workers for {cores} cores", f"loader.num_workers={cores} or fewer")]
    if data_share > 0.5:
        more = "more data workers" if plan.workers < cores else "a faster data set"
        return [
            Finding(
                "warning",
                "loader",
                f"{data_share:.0%} of an iteration is waiting for data",
                f"{more}; loader.num_workers is {plan.workers}",
            )
        ]
    return []


def readable(size: float) -> str:
    """`1.5 GB`."""
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000 or unit == "PB":
            return f"{size:.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    raise AssertionError
