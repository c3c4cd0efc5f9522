"""The files that a torch profile leaves."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path
from typing import Any

from hookline.profiling.words import busiest

TOP = 30  # rows of the table of operators


def write_traces(profiler: Any, folder: Path, number: int, chrome: bool, tensorboard: bool) -> None:
    """`trace_1.json` for chrome://tracing or Perfetto, and the same where TensorBoard's profiler plugin looks for it."""
    trace = folder / f"trace_{number}.json"
    if chrome or tensorboard:
        profiler.export_chrome_trace(str(trace))  # torch does this only once for a profile
    if tensorboard:
        (folder / "tensorboard").mkdir(exist_ok=True)
        copy = folder / "tensorboard" / f"{socket.gethostname()}.{time.time_ns()}.pt.trace.json"
        (shutil.copyfile if chrome else shutil.move)(trace, copy)


def write_tables(profiler: Any, folder: Path, number: int, words: str, on_gpu: bool, with_stack: bool) -> str:
    """`operators_1.txt` and `summary_1.txt`; the text of the latter."""
    averages = profiler.key_averages(group_by_stack_n=5 if with_stack else 0)
    order = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    (folder / f"operators_{number}.txt").write_text(averages.table(sort_by=order, row_limit=TOP), encoding="utf-8")
    summary = f"{words}\n{busiest(averages, on_gpu)}"
    (folder / f"summary_{number}.txt").write_text(summary + "\n", encoding="utf-8")
    return summary
