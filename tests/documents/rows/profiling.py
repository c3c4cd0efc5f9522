"""Rows about ProfilerHook, MemoryProfilerHook and IterTimerHook."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hookline import Runner
from hookline.hooks import IterTimerHook, MemoryProfilerHook, ProfilerHook
from tests.documents.runs import bare, full, image_batches, log_rows, messages
from tests.documents.table import REQUIREMENTS, Section

CYCLE = {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}

profiler = Section(REQUIREMENTS, "profiler hook")
profiler.defaults(
    ProfilerHook,
    {
        "by_epoch": False,
        "profile_iters": 100,
        "schedule": None,
        "on_trace_ready": None,
        "record_shapes": True,
        "profile_memory": True,
        "with_stack": False,
        "with_flops": True,
        "export_chrome_trace": True,
        "export_tensorboard": True,
    },
)


class Profiled:
    """The results of a run with a profile."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.seen: list[Any] = []
        options = {"schedule": CYCLE, "profile_iters": 8, **options}
        self.hook = ProfilerHook(on_trace_ready=self._note, **options)
        with messages() as found:
            self.runner = full(self.hook, train_loader=image_batches(8), max_epochs=2)
        self.messages = found
        self.folder = self.runner.work_dir / "profile"

    def _note(self, profile: Any) -> None:
        self.seen.append((self.hook.runner.iter, list(profile.key_averages())))

    def trace(self) -> str:
        return (self.folder / "trace_1.json").read_text()


@cache
def _profiled(text: str) -> Profiled:
    return Profiled(json.loads(text))


def profiled(**options: Any) -> Profiled:
    return _profiled(json.dumps(options, sort_keys=True))


OTHER = {
    "record_shapes": False,
    "profile_memory": False,
    "with_stack": True,
    "with_flops": False,
    "export_chrome_trace": False,
}


@profiler.row("parameter", "`by_epoch` counts `profile_iters` in epochs")
def _() -> None:
    schedule = {"wait": 1, "warmup": 0, "active": 1, "repeat": 0}
    by_epoch = profiled(by_epoch=True, profile_iters=1, schedule=schedule)
    by_iter = profiled(profile_iters=4, schedule=schedule)
    assert (len(by_epoch.seen), len(by_iter.seen)) == (4, 2)


profiler.add(
    "parameter",
    "`profile_iters` is the number of iterations that the profiler follows",
    lambda: (
        len(profiled(profile_iters=6, schedule={"wait": 1, "warmup": 0, "active": 1}).seen) == 3
    ),
)


@profiler.row(
    "parameter", "`schedule` has the parts of a cycle; by default they depend on the length"
)
def _() -> None:
    assert ProfilerHook()._schedule == {"wait": 10, "warmup": 10, "active": 80, "repeat": 0}
    assert ProfilerHook(schedule=CYCLE)._schedule == CYCLE


def last_step(**schedule: int) -> list[int]:
    """Return the iterations after which the cycles of the profiler end."""
    complete = {"wait": 0, "warmup": 0, "active": 1, "repeat": 1, **schedule}
    return [step for step, _ in profiled(schedule=complete, profile_iters=16).seen]


profiler.add("parameter", "`wait` skips iterations", lambda: last_step(wait=3) == [4])
profiler.add(
    "parameter",
    "`warmup` iterations are not part of the profile",
    lambda: last_step(warmup=2) == [3],
)
profiler.add("parameter", "`active` iterations are profiled", lambda: last_step(active=3) == [3])
profiler.add(
    "parameter",
    "`repeat` is the number of cycles",
    lambda: last_step(wait=1, repeat=3) == [2, 4, 6],
)
profiler.add(
    "parameter",
    "`on_trace_ready` is called with the profiler after each cycle",
    lambda: len(profiled().seen) == 1 and len(profiled().seen[0][1]) > 5,
)
profiler.add(
    "parameter",
    "`record_shapes` records the shapes of inputs",
    lambda: '"Input Dims"' in profiled().trace() and not shapes(profiled(**OTHER)),
)


def shapes(of: Profiled) -> bool:
    (path,) = (of.folder / "tensorboard").iterdir()
    return '"Input Dims"' in path.read_text()


@profiler.row("parameter", "`profile_memory` records what operators allocate")
def _() -> None:
    on, off = profiled().seen[0][1], profiled(**OTHER).seen[0][1]
    assert any(event.cpu_memory_usage for event in on)
    assert not any(event.cpu_memory_usage for event in off)


@profiler.row("parameter", "`with_stack` records the calling source lines")
def _() -> None:
    (path,) = (profiled(**OTHER).folder / "tensorboard").iterdir()
    assert ".py(" in path.read_text()
    assert ".py(" not in profiled().trace()


@profiler.row("parameter", "`with_flops` counts floating-point operations")
def _() -> None:
    on, off = profiled(), profiled(**OTHER)
    assert "FLOP" in (on.folder / "summary_1.txt").read_text()
    assert "FLOP" not in (off.folder / "summary_1.txt").read_text()


@profiler.row("parameter", "`export_chrome_trace` writes a trace for Chrome")
def _() -> None:
    assert json.loads(profiled().trace())["traceEvents"]
    assert not (profiled(**OTHER).folder / "trace_1.json").exists()


@profiler.row("parameter", "`export_tensorboard` writes a trace for TensorBoard")
def _() -> None:
    assert list((profiled().folder / "tensorboard").glob("*.pt.trace.json"))
    off = profiled(export_tensorboard=False)
    assert not (off.folder / "tensorboard").exists()


@profiler.row("behavior", "a summary names the phases of an iteration and their times")
def _() -> None:
    text = (profiled().folder / "summary_1.txt").read_text()
    for phase in ("data", "forward", "backward", "optimizer"):
        assert phase in text, phase
    assert any("longest phase" in message for message in profiled().messages)


@profiler.row("behavior", "a table names the most expensive operators")
def _() -> None:
    assert "aten::" in (profiled().folder / "operators_1.txt").read_text()


@profiler.row("behavior", "with stacks, the table names the calling functions")
def _() -> None:
    text = (profiled(**OTHER).folder / "operators_1.txt").read_text()
    assert "Source Location" in text


@profiler.row(
    "moment", "the profiler starts with the run and its report is written when it is done"
)
def _() -> None:
    assert (profiled().folder / "summary_1.txt").exists()
    short = bare(ProfilerHook(schedule={"wait": 0, "warmup": 1, "active": 50}), max_epochs=1)
    assert (short.work_dir / "profile" / "summary_1.txt").exists()


memory = Section(REQUIREMENTS, "memory profiler hook")
memory.defaults(
    MemoryProfilerHook, {"interval": 50, "log_gpu": True, "log_cpu": True, "warn_threshold": None}
)


@cache
def remembered(**options: Any) -> tuple[Runner, list[str]]:
    with messages() as found:
        runner = full(MemoryProfilerHook(**{"interval": 4, **options}))
    return runner, found


def recorded(name: str, **options: Any) -> list[int]:
    return [row["iter"] for row in log_rows(remembered(**options)[0]) if name in row]


memory.add(
    "parameter",
    "`interval` counts the iterations between two records",
    lambda: recorded("memory/rss_gb") == [4, 8, 12],
)
memory.add(
    "parameter",
    "`log_gpu` is accepted on a machine without a GPU, and records nothing there",
    lambda: recorded("memory/gpu_gb", log_gpu=True) == recorded("memory/gpu_gb", log_gpu=False),
)
memory.add(
    "parameter",
    "`log_cpu` of false records no memory of the process",
    lambda: recorded("memory/rss_gb", log_cpu=False) == [],
)


@memory.row("parameter", "`warn_threshold` in GB gives a warning, once")
def _() -> None:
    warned = [line for line in remembered(warn_threshold=0.001)[1] if "warn_threshold" in line]
    assert len(warned) == 1
    assert not [line for line in remembered()[1] if "warn_threshold" in line]


@memory.row("behavior", "the current and the peak memory of the process are recorded")
def _() -> None:
    row = next(row for row in log_rows(remembered()[0]) if "memory/rss_gb" in row)
    assert 0.05 < row["memory/rss_gb"] <= row["memory/rss_peak_gb"]


timer = Section(REQUIREMENTS, "iteration timer hook")
timer.defaults(IterTimerHook, {"interval": 50, "log_eta": True})


@cache
def timed(**options: Any) -> tuple[Runner, list[str]]:
    with messages() as found:
        runner = full(
            IterTimerHook(**{"interval": 5, "warmup_iter": 1, **options}),
            {"type": "LoggerHook", "interval": 5, "by_epoch": False},
            train_loader=image_batches(10),
        )
    return runner, found


@timer.row("parameter", "`interval` counts the iterations between two records of rates")
def _() -> None:
    history = timed()[0].events.history("time/iters_per_s")
    assert [value.iter for value in history] == [4, 9, 14, 19]


@timer.row("parameter", "`log_eta` of false records no estimate of the remaining time")
def _() -> None:
    assert all("eta" in row for row in log_rows(timed()[0]) if "loss" in row)
    assert not any("eta" in row for row in log_rows(timed(log_eta=False)[0]))


PHASES = ("data", "forward", "backward", "optimizer")
for _phase in PHASES:
    timer.add(
        "behavior",
        f"the time of the phase {_phase} is recorded",
        lambda phase=_phase: timed()[0].events.latest()[f"time/{phase}"] >= 0,
    )


@timer.row("behavior", "samples and iterations per second are recorded")
def _() -> None:
    latest = timed()[0].events.latest()
    ratio = latest["time/samples_per_s"] / latest["time/iters_per_s"]
    assert abs(ratio - 4) < 1e-6  # the size of a batch


@timer.row("moment", "each iteration has a time and the time that it waited for its batch")
def _() -> None:
    times = timed()[0].events.history("time")
    waits = timed()[0].events.history("data_time")
    assert len(times) == len(waits) == 20
    assert all(time.value >= wait.value >= 0 for time, wait in zip(times, waits, strict=True))


@timer.row("moment", "the end of the run reports the speed of the training, which is positive")
def _() -> None:
    (line,) = [line for line in timed()[1] if line.startswith("Overall training speed")]
    assert float(line.partition("(")[2].split()[0]) > 0
