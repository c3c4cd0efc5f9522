"""Record memory use and warn about leaks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_at_least
from hookline.profiling.growth import Growth

GB = 1e9  # bytes
MB = 1e6  # bytes


@HOOKS.register()
@dataclass
class MemoryProfilerHook(BaseHook):
    """Record the current and the peak memory of the process and the GPU.

    The scalars are `memory/rss_gb`, `memory/rss_peak_gb`, `memory/gpu_gb`, `memory/gpu_reserved_gb`
    and `memory/gpu_peak_gb`. The hook warns once if memory exceeds `warn_threshold`, and once, with
    the slope, if it keeps growing like a leak.

    Args:
        interval: Number of iterations between two records.
        log_gpu: Record GPU memory, if training runs on a GPU.
        log_cpu: Record the memory of the process.
        warn_threshold: Memory in GB that triggers a warning. None never warns about the amount.

    Example:
        ```yaml
        hooks:
          - {type: MemoryProfilerHook, interval: 50, warn_threshold: 12.0}
        ```
    """

    interval: int = 50
    log_gpu: bool = True
    log_cpu: bool = True
    warn_threshold: float | None = None

    priority = Priority.LOW

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")
        if self.warn_threshold is not None and not self.warn_threshold > 0:
            raise parameter_error(self, "warn_threshold", "must be above 0 GB")

    def before_train(self, runner: BaseRunner) -> None:
        self._process = psutil.Process()
        self._growth = {"the process": Growth(), "the GPU": Growth()}
        self._warned: set[tuple[str, str]] = set()
        if runner.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(runner.device)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if (runner.iter + 1) % self.interval == 0:
            for owner, scalars in self._measure(runner):
                runner.events.put_scalars(scalars, smoothing_hint=False)
                used = next(iter(scalars.values()))
                self._warn_about_use(runner, owner, used)

    def _measure(self, runner: BaseRunner) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield the scalars of each owner in GB, the current use first."""
        if self.log_cpu:
            used = self._process.memory_info()
            yield (
                "the process",
                {
                    "memory/rss_gb": used.rss / GB,
                    "memory/rss_peak_gb": max(_peak(used), used.rss) / GB,
                },
            )
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

    def _warn_about_use(self, runner: BaseRunner, owner: str, used: float) -> None:
        threshold = self.warn_threshold
        if threshold is not None and used > threshold:
            message = f"{owner} uses {used:.2f} GB, more than warn_threshold ({threshold:g} GB)"
            self._warn_once(runner, (owner, "amount"), message)
        slope = self._growth[owner].add(runner.iter, used * GB)
        if slope is not None:
            message = (
                f"the memory of {owner} keeps growing, by {slope / MB:.3g} MB per iteration, and "
                f"is at {used:.2f} GB: check whether your code keeps every loss, output or batch"
            )
            self._warn_once(runner, (owner, "growth"), message)

    def _warn_once(self, runner: BaseRunner, subject: tuple[str, str], message: str) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            runner.logger.warning("%s, iteration %d: %s", self.name, runner.iter + 1, message)


def _peak(memory: object) -> int:
    """Return the peak memory of this process in bytes."""
    if sys.platform == "win32":
        return int(memory.peak_wset)  # type: ignore[attr-defined]
    import resource

    unit_bytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit_bytes
