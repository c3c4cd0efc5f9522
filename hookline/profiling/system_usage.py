"""Read the use of CPU, memory, GPUs, network and disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil

Scalars = dict[str, float]
Source = Callable[[], Scalars]

NETWORK_FIELDS = {"network_sent_mb_s": "bytes_sent", "network_received_mb_s": "bytes_recv"}
DISK_FIELDS = {"disk_read_mb_s": "read_bytes", "disk_written_mb_s": "write_bytes"}


class CpuUse:
    """The CPU use of the machine and of this process, in percent since the last reading."""

    def __init__(self) -> None:
        self._process = psutil.Process()

    def __call__(self) -> Scalars:
        return {
            "cpu_percent": psutil.cpu_percent(),
            "process_cpu_percent": self._process.cpu_percent(),
        }


class MemoryUse:
    """The memory use of the machine in percent, and of this process in GB."""

    def __init__(self) -> None:
        self._process = psutil.Process()

    def __call__(self) -> Scalars:
        return {
            "memory_percent": psutil.virtual_memory().percent,
            "process_memory_gb": self._process.memory_info().rss / 1e9,
        }


class GpuUse:
    """The use of one GPU and of its memory.

    Args:
        nvml: The module `pynvml`, initialized.
        index: The number of the GPU.
        compute: Whether to read the use of the GPU itself.
        memory: Whether to read the use of its memory.
    """

    def __init__(self, nvml: Any, index: int, *, compute: bool, memory: bool) -> None:
        self._nvml = nvml
        self._device = nvml.nvmlDeviceGetHandleByIndex(index)
        self._name = f"gpu{index}"
        self._compute = compute
        self._memory = memory

    def __call__(self) -> Scalars:
        scalars: Scalars = {}
        if self._compute:
            rates = self._nvml.nvmlDeviceGetUtilizationRates(self._device)
            scalars[f"{self._name}_percent"] = rates.gpu
        if self._memory:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._device)
            scalars[f"{self._name}_memory_percent"] = 100 * memory.used / memory.total
            scalars[f"{self._name}_memory_gb"] = memory.used / 1e9
        return scalars


class Rates:
    """Byte counters as MB/s since the last reading; empty if the machine has no such counters.

    Args:
        read: Returns the counters, or None.
        fields: The attribute of the counters for each name of a rate.
        clock: Returns the time in seconds.
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


def read_all(sources: Sequence[Source]) -> Scalars:
    """Read all sources; the names of their scalars begin with `system/`."""
    scalars: Scalars = {}
    for source in sources:
        for name, value in source().items():
            scalars[f"system/{name}"] = value
    return scalars
