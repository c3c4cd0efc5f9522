"""Record the use of CPU, memory, GPUs, network and disk during training."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import Any

import psutil

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_at_least
from hookline.profiling.system_usage import (
    DISK_FIELDS,
    NETWORK_FIELDS,
    CpuUse,
    GpuUse,
    MemoryUse,
    Rates,
    Scalars,
    Source,
    read_all,
)

FIRST_SAMPLE_S = 0.1  # The first sample comes early, so that short runs have one too.
JOIN_TIMEOUT_S = 5.0  # A driver that hangs must not block the end of the run.


@HOOKS.register()
@dataclass
class SystemMonitorHook(BaseHook):
    """Record the use of CPU, memory, GPUs, network and disk as `system/…`.

    A thread takes the samples, and an iteration only records the latest one. Network and disk rates
    are those of the whole machine, in MB/s. Without a GPU that NVML can read, the hook logs so once
    and monitors the rest.

    Args:
        frequency: Number of iterations between two records.
        interval: Seconds between two samples.
        track_cpu: Record the CPU use of the machine and of the process.
        track_memory: Record the memory use of the machine and of the process.
        track_gpu: Record the use of each GPU.
        track_gpu_memory: Record the memory use of each GPU.
        track_network: Record the network traffic.
        track_disk: Record the disk traffic.

    Example:
        ```yaml
        hooks:
          - {type: SystemMonitorHook, frequency: 10, interval: 2.0, track_network: false}
        ```
    """

    frequency: int = 10
    interval: float = 2.0
    track_cpu: bool = True
    track_memory: bool = True
    track_gpu: bool = True
    track_gpu_memory: bool = True
    track_network: bool = True
    track_disk: bool = True
    samples_taken: int = field(default=0, init=False, repr=False)

    priority = Priority.LOW
    ranks = "main"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "frequency")
        if not self.interval > 0:
            raise parameter_error(self, "interval", "must be above 0 seconds")
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._latest: Scalars = {}

    def before_train(self, runner: BaseRunner) -> None:
        self._latest = {}
        self._stop = threading.Event()
        self.samples_taken = 0
        self._thread = threading.Thread(
            target=self._monitor,
            args=(self._stop, runner.logger),
            name=f"hookline-{self.name}",
            daemon=True,
        )
        self._thread.start()

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self._latest:
            runner.events.put_scalars(self._latest, smoothing_hint=False)

    def cleanup(self, runner: BaseRunner) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(JOIN_TIMEOUT_S)
            self._thread = None

    def _monitor(self, stop: threading.Event, logger: logging.Logger) -> None:
        nvml = None
        if self.track_gpu or self.track_gpu_memory:
            nvml = self._open_nvml(logger)
        try:
            sources = self._sources(nvml)
            read_all(sources)  # Rates are differences: they need a first reading.
            pause = min(self.interval, FIRST_SAMPLE_S)
            while not stop.wait(pause):
                self._latest = read_all(sources)
                self.samples_taken += 1
                pause = self.interval
        except Exception:  # A failure of the monitor must not end training.
            logger.warning("%s: monitoring failed and is off", self.name, exc_info=True)
        finally:
            if nvml is not None:
                nvml.nvmlShutdown()

    def _open_nvml(self, logger: logging.Logger) -> Any:
        try:
            import pynvml
        except ImportError:
            logger.info("%s: no GPU is monitored: install nvidia-ml-py", self.name)
            return None
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            logger.info("%s: no GPU is monitored: %s", self.name, error)
            return None
        return pynvml

    def _sources(self, nvml: Any) -> list[Source]:
        sources: list[Source] = []
        if self.track_cpu:
            sources.append(CpuUse())
        if self.track_memory:
            sources.append(MemoryUse())
        if self.track_network:
            sources.append(Rates(psutil.net_io_counters, NETWORK_FIELDS))
        if self.track_disk:
            sources.append(Rates(psutil.disk_io_counters, DISK_FIELDS))
        if nvml is not None:
            options = {"compute": self.track_gpu, "memory": self.track_gpu_memory}
            for index in range(nvml.nvmlDeviceGetCount()):
                sources.append(GpuUse(nvml, index, **options))
        return sources
