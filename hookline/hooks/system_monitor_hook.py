"""Record the use of CPU, memory, GPUs, network and disk during training."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psutil

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_at_least

FIRST_SAMPLE_S = 0.1  # The first sample comes early, so that short runs have one too.
JOIN_TIMEOUT_S = 5.0  # A driver that hangs must not block the end of the run.

Scalars = dict[str, float]
Source = Callable[[], Scalars]


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
            _sample(sources)  # Rates are differences: they need a first reading.
            pause = min(self.interval, FIRST_SAMPLE_S)
            while not stop.wait(pause):
                self._latest = _sample(sources)
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
        process = psutil.Process()
        if self.track_cpu:
            sources.append(lambda: _cpu_use(process))
        if self.track_memory:
            sources.append(lambda: _memory_use(process))
        if self.track_network:
            fields = {"network_sent_mb_s": "bytes_sent", "network_received_mb_s": "bytes_recv"}
            sources.append(Rates(psutil.net_io_counters, fields))
        if self.track_disk:
            fields = {"disk_read_mb_s": "read_bytes", "disk_written_mb_s": "write_bytes"}
            sources.append(Rates(psutil.disk_io_counters, fields))
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
    """Byte counters as MB/s since the last reading; empty if the machine has no such counters.

    Args:
        read: Returns the counters, or None.
        fields: The attribute of the counters for each name of a rate.
    """

    def __init__(
        self,
        read: Callable[[], Any],
        fields: dict[str, str],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._read = read
        self._fields = fields
        self._clock = clock
        self._last_time = clock()
        self._last_counters = read()

    def __call__(self) -> Scalars:
        now = self._clock()
        counters = self._read()
        seconds = now - self._last_time
        before = self._last_counters
        self._last_time = now
        self._last_counters = counters
        if counters is None or before is None or not seconds:
            return {}
        rates: Scalars = {}
        for name, attribute in self._fields.items():
            change = getattr(counters, attribute) - getattr(before, attribute)
            rates[name] = change / 1e6 / seconds
        return rates


def _cpu_use(process: psutil.Process) -> Scalars:
    return {
        "cpu_percent": psutil.cpu_percent(),
        "process_cpu_percent": process.cpu_percent(),
    }


def _memory_use(process: psutil.Process) -> Scalars:
    return {
        "memory_percent": psutil.virtual_memory().percent,
        "process_memory_gb": process.memory_info().rss / 1e9,
    }


def _sample(sources: list[Source]) -> Scalars:
    sample: Scalars = {}
    for source in sources:
        for name, value in source().items():
            sample[f"system/{name}"] = value
    return sample
