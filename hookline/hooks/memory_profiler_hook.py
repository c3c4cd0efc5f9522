"""How much memory a run takes, and whether it takes ever more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.profiling.growth import Growth

GB, MB = 1e9, 1e6


@HOOKS.register()
@dataclass
class MemoryProfilerHook(BaseHook):
    """Record the memory of the process and of the GPU, now and at its peak, every `interval` iterations.

    As `memory/rss_gb`, `memory/rss_peak_gb`, `memory/gpu_gb`, `memory/gpu_reserved_gb`, `memory/gpu_peak_gb`. One warning comes
    when either passes `warn_threshold` (in GB), and one, with the slope, when it keeps growing as if something leaked.
    """

    interval: int = 50
    log_gpu: bool = True
    log_cpu: bool = True
    warn_threshold: float | None = None

    priority = Priority.LOW

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"MemoryProfilerHook: interval must be at least 1, got {self.interval}")
        if self.warn_threshold is not None and not self.warn_threshold > 0:
            raise ValueError(f"MemoryProfilerHook: warn_threshold is in GB and above 0, got {self.warn_threshold}")

    def before_train(self, runner: BaseRunner) -> None:
        self._process = psutil.Process()
        self._growth = {"the process": Growth(), "the GPU": Growth()}
        self._told: set[tuple[str, str]] = set()
        if runner.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(runner.device)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if (runner.iter + 1) % self.interval == 0:
            for owner, scalars in self._measure(runner):
                runner.events.put_scalars(scalars, smoothing_hint=False)
                used = next(iter(scalars.values()))
                self._judge(runner, owner, used)

    def _measure(self, runner: BaseRunner) -> Iterator[tuple[str, dict[str, float]]]:
        """By owner, in GB; what is in use comes first."""
        if self.log_cpu:
            used = self._process.memory_info()
            yield "the process", {"memory/rss_gb": used.rss / GB, "memory/rss_peak_gb": max(_peak(used), used.rss) / GB}
        if self.log_gpu and runner.device.type == "cuda":
            device = runner.device
            yield (
                "the GPU",
                {
                    "memory/gpu_gb": torch.cuda.memory_allocated(device) / GB,
                    "memory/gpu_reserved_gb": torch.cuda.memory_reserved(device) / GB,
                    "memory/gpu_peak_gb": torch.cuda.max_memory_allocated(device) / GB,
                },
            )

    def _judge(self, runner: BaseRunner, owner: str, used: float) -> None:
        if self.warn_threshold is not None and used > self.warn_threshold:
            self._tell(runner, owner, "much", f"{owner} uses {used:.2f} GB, more than warn_threshold ({self.warn_threshold:g} GB)")
        slope = self._growth[owner].add(runner.iter, used * GB)
        if slope is not None:
            text = f"the memory of {owner} keeps growing, by {slope / MB:.3g} MB an iteration, and is at {used:.2f} GB: "
            self._tell(runner, owner, "growth", text + "does something keep every loss, output or batch?")

    def _tell(self, runner: BaseRunner, owner: str, what: str, text: str) -> None:
        if (owner, what) not in self._told:
            self._told.add((owner, what))
            runner.logger.warning("%s, iteration %d: %s", self.name, runner.iter + 1, text)


def _peak(memory: object) -> int:
    """The most that this process ever had, in bytes."""
    if sys.platform == "win32":
        return int(memory.peak_wset)  # type: ignore[attr-defined]
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
