"""Parameters of hooks that measure time, memory and the machine: observed are records and files."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

from hookline.hooks import LambdaHook
from tests.contracts.parameters.loggers import moments_of
from tests.contracts.parameters.rows import Config, Row, rows
from tests.contracts.training import files_below, messages_of, train
from tests.helpers import batches

PROFILED: dict[str, Any] = {"train_loader": batches(5), "max_epochs": 2}


def profile(config: Config, folder: Path) -> dict[str, Any]:
    """Return what a profile leaves: its files, what its traces contain, and the profiled layers."""
    train(folder, config, **PROFILED)
    contents: set[str] = set()
    layers = 0
    for path in sorted((folder / "profile").rglob("*trace*.json")):
        for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
            layers += event["name"] == "aten::addmm"
            contents.update({"shapes"} if "Input Dims" in event.get("args", {}) else ())
            contents.update({event["name"]} & {"[memory]"})
            contents.update({event.get("cat")} & {"python_function"})
    summaries = [path.read_text(encoding="utf-8") for path in folder.rglob("summary_*.txt")]
    traces = [Path(name).parent.as_posix() for name in files_below(folder / "profile", "*.json")]
    return {
        "traces": traces,
        "contents": sorted(contents),
        "layers": layers,
        "flops": ["FLOP" in text for text in summaries],
    }


def traces_handed_over(config: Config, folder: Path) -> int:
    """Return how many profiles are handed to the user's function."""
    HANDED_OVER.clear()
    train(folder, config, **PROFILED)
    return len(HANDED_OVER)


HANDED_OVER: list[Any] = []


def files(config: Config, folder: Path) -> list[str]:
    """Return the files of a run."""
    train(folder, config)
    return files_below(folder)


def warnings_about_memory(config: Config, folder: Path) -> int:
    """Return how many warnings about memory are logged."""
    with messages_of("MemoryProfilerHook", logging.WARNING) as messages:
        train(folder, config)
    return len(messages)


def names_recorded(config: Config, folder: Path) -> list[str]:
    """Return the names of all recorded scalars."""
    return sorted(train(folder, config).events.latest())


class Pauses(threading.Event):
    """An event that notes for how long it is waited for, and shortens the wait."""

    requested: list[float]

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.requested.append(timeout)
        return super().wait(0.001)


def machine(config: Config, folder: Path) -> tuple[list[str], list[float], int]:
    """Return the scalars about a machine with a GPU, the pauses between samples, and the distance
    of iterations in which samples are recorded.
    """
    pauses: list[float] = []
    event = type("NotedPauses", (Pauses,), {"requested": pauses})
    recorded: dict[str, list[int]] = {}

    def stop_when_sampled(runner: Any) -> None:
        names = [name for name in runner.events.latest() if name.startswith("system/")]
        for name in names:
            recorded[name] = [scalar.iter for scalar in runner.events.history(name)]
        if len(pauses) > 2 and names and len(recorded[names[0]]) > 1:
            runner.request_stop("sampled")
        time.sleep(0.001)  # let the sampling thread run

    with pytest.MonkeyPatch.context() as patch:
        fake = SimpleNamespace(Thread=threading.Thread, Event=event)
        patch.setattr("hookline.hooks.system_monitor_hook.threading", fake)
        patch.setitem(sys.modules, "pynvml", one_gpu())
        moved = SimpleNamespace(bytes_sent=1, bytes_recv=2, read_bytes=3, write_bytes=4)
        patch.setattr(psutil, "net_io_counters", lambda: moved)
        patch.setattr(psutil, "disk_io_counters", lambda: moved)
        note = LambdaHook(before_train_iter=stop_when_sampled)
        train(folder, config, note, max_iters=100_000)
    steps = next(iter(recorded.values()))
    return sorted(recorded), pauses[:2], steps[1] - steps[0]


def one_gpu() -> ModuleType:
    """Return a stand-in for NVML on a machine with one GPU."""
    nvml: Any = ModuleType("pynvml")
    nvml.NVMLError = RuntimeError
    nvml.nvmlInit = nvml.nvmlShutdown = lambda: None
    nvml.nvmlDeviceGetCount = lambda: 1
    nvml.nvmlDeviceGetHandleByIndex = lambda index: index
    nvml.nvmlDeviceGetUtilizationRates = lambda device: SimpleNamespace(gpu=40)
    nvml.nvmlDeviceGetMemoryInfo = lambda device: SimpleNamespace(used=10**9, total=4 * 10**9)
    module: ModuleType = nvml
    return module


SHORT = {"schedule": {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}}

ROWS: dict[str, list[Row]] = {
    "ProfilerHook": [
        *rows(
            profile,
            SHORT,
            profile_memory=(True, False),
            with_stack=(False, True),
            with_flops=(True, False),
            export_chrome_trace=(True, False),
            export_tensorboard=(True, False),
            schedule=(SHORT["schedule"], {**SHORT["schedule"], "active": 3}),
        ),
        *rows(profile, {**SHORT, "with_flops": False}, record_shapes=(True, False)),
        *rows(profile, profile_iters=(4, 6)),
        *rows(profile, {"profile_iters": 1, "schedule": {"active": 3}}, by_epoch=(False, True)),
        *rows(traces_handed_over, SHORT, on_trace_ready=(None, HANDED_OVER.append)),
    ],
    "RunTraceHook": rows(files, path=("run_trace.json", "trace.json")),
    "MemoryProfilerHook": [
        *rows(moments_of("memory/rss_gb"), interval=(2, 3)),
        *rows(names_recorded, {"interval": 2}, log_cpu=(True, False)),
        *rows(warnings_about_memory, {"interval": 2}, warn_threshold=(None, 1e-6)),
    ],
    "ThroughputHook": [
        *rows(moments_of("throughput/samples_per_s"), interval=(2, 3)),
        *rows(names_recorded, {"interval": 2}, peak_flops=(None, 1e12)),
    ],
    "SystemMonitorHook": rows(
        machine,
        {"frequency": 1},
        frequency=(1, 3),
        interval=(2.0, 60.0),
        track_cpu=(True, False),
        track_memory=(True, False),
        track_gpu=(True, False),
        track_gpu_memory=(True, False),
        track_network=(True, False),
        track_disk=(True, False),
    ),
}
