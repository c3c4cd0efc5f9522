"""What a run takes of its machine."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority

FIRST_SAMPLE = 0.1  # seconds to the first sample, so that short runs have one too

Scalars = dict[str, float]
Source = Callable[[], Scalars]


@HOOKS.register()
@dataclass
class SystemMonitorHook(BaseHook):
    """Record the use of CPU, memory, GPUs, network and disk as `system/…` every `frequency` iterations.

    A thread takes samples every `interval` seconds; an iteration only records the latest one. Network and disk are those of
    the whole machine, in MB/s. Without a GPU that NVML can see, the log says so once and the rest is monitored.
    """

    frequency: int = 10
    interval: float = 2.0
    track_cpu: bool = True
    track_memory: bool = True
    track_gpu: bool = True
    track_gpu_memory: bool = True
    track_network: bool = True
    track_disk: bool = True

    priority = Priority.LOW
    ranks = "main"

    def __post_init__(self) -> None:
        if self.frequency < 1:
            raise ValueError(f"SystemMonitorHook: frequency must be at least 1, got {self.frequency}")
        if not self.interval > 0:
            raise ValueError(f"SystemMonitorHook: interval must be more than 0 seconds, got {self.interval}")
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._latest: Scalars = {}

    def before_train(self, runner: BaseRunner) -> None:
        self._latest, self._stop = {}, threading.Event()
        self._thread = threading.Thread(target=self._watch, args=(self._stop, runner.logger), name=f"hookline-{self.name}", daemon=True)
        self._thread.start()

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self._latest:
            runner.events.put_scalars(self._latest, smoothing_hint=False)

    def cleanup(self, runner: BaseRunner) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)  # a driver that hangs must not hang the end of the run
            self._thread = None

    def _watch(self, stop: threading.Event, logger: logging.Logger) -> None:
        nvml = self._open_nvml(logger) if self.track_gpu or self.track_gpu_memory else None
        try:
            sources = self._sources(nvml)
            _sample(sources)  # rates need a beginning
            pause = min(self.interval, FIRST_SAMPLE)
            while not stop.wait(pause):
                self._latest = _sample(sources)
                pause = self.interval
        except Exception:  # training is worth more than its statistics
            logger.warning("%s: monitoring ends here", self.name, exc_info=True)
        finally:
            if nvml is not None:
                nvml.nvmlShutdown()

    def _open_nvml(self, logger: logging.Logger) -> Any:
        try:
            import pynvml
        except ImportError:
            logger.info("%s: no GPU is monitored: that needs the package nvidia-ml-py", self.name)
            return None
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            logger.info("%s: no GPU is monitored: %s", self.name, error)
            return None
        return pynvml

    def _sources(self, nvml: Any) -> list[Source]:
        sources: list[Source] = []
        process = psutil.Process()
        if self.track_cpu:
            sources.append(lambda: {"cpu_percent": psutil.cpu_percent(), "process_cpu_percent": process.cpu_percent()})
        if self.track_memory:
            sources.append(
                lambda: {"memory_percent": psutil.virtual_memory().percent, "process_memory_gb": process.memory_info().rss / 1e9}
            )
        if self.track_network:
            sources.append(Rates(psutil.net_io_counters, network_sent_mb_s="bytes_sent", network_received_mb_s="bytes_recv"))
        if self.track_disk:
            sources.append(Rates(psutil.disk_io_counters, disk_read_mb_s="read_bytes", disk_written_mb_s="write_bytes"))
        if nvml is not None:
            for index in range(nvml.nvmlDeviceGetCount()):
                sources.append(self._gpu_source(nvml, index))
        return sources

    def _gpu_source(self, nvml: Any, index: int) -> Source:
        device = nvml.nvmlDeviceGetHandleByIndex(index)

        def read() -> Scalars:
            scalars: Scalars = {}
            if self.track_gpu:
                scalars[f"gpu{index}_percent"] = nvml.nvmlDeviceGetUtilizationRates(device).gpu
            if self.track_gpu_memory:
                memory = nvml.nvmlDeviceGetMemoryInfo(device)
                scalars[f"gpu{index}_memory_percent"] = 100 * memory.used / memory.total
                scalars[f"gpu{index}_memory_gb"] = memory.used / 1e9
            return scalars

        return read


class Rates:
    """Counters of bytes as MB/s since they were last read; nothing where the machine has no such counters."""

    def __init__(self, read: Callable[[], Any], **fields: str) -> None:
        self._read, self._fields = read, fields
        self._then, self._before = time.perf_counter(), read()

    def __call__(self) -> Scalars:
        now, counters = time.perf_counter(), self._read()
        then, before = self._then, self._before
        self._then, self._before = now, counters
        if counters is None or before is None:
            return {}
        return {name: (getattr(counters, field) - getattr(before, field)) / 1e6 / (now - then) for name, field in self._fields.items()}


def _sample(sources: list[Source]) -> Scalars:
    return {f"system/{name}": value for source in sources for name, value in source().items()}
