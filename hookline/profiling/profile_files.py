"""Write the files of a torch profile."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path
from typing import Any

from hookline.files import NEW_FILE_MODE, replace_file
from hookline.profiling.profile_summary import describe_operators

MAX_ROWS = 30  # of the table of operators


def write_traces(profiler: Any, folder: Path, number: int, chrome: bool, tensorboard: bool) -> None:
    """Write `trace_1.json` for chrome://tracing and Perfetto, and a copy for TensorBoard."""
    trace = folder / f"trace_{number}.json"
    if chrome or tensorboard:
        partial = folder / f".trace_{number}.json"  # torch would follow a link
        partial.unlink(missing_ok=True)
        profiler.export_chrome_trace(str(partial))  # torch exports a profile only once
        os.chmod(partial, NEW_FILE_MODE)
        partial.replace(trace)
    if tensorboard:
        (folder / "tensorboard").mkdir(exist_ok=True)
        copy = folder / "tensorboard" / f"{socket.gethostname()}.{time.time_ns()}.pt.trace.json"
        if chrome:
            shutil.copyfile(trace, copy)
        else:
            shutil.move(trace, copy)


def write_tables(
    profiler: Any, folder: Path, number: int, words: str, on_gpu: bool, with_stack: bool
) -> str:
    """Write `operators_1.txt` and `summary_1.txt`; return the summary."""
    averages = profiler.key_averages(group_by_stack_n=5 if with_stack else 0)
    order = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    table = averages.table(sort_by=order, row_limit=MAX_ROWS)
    replace_file(folder / f"operators_{number}.txt", table)
    summary = f"{words}\n{describe_operators(averages, on_gpu)}"
    replace_file(folder / f"summary_{number}.txt", summary + "\n")
    return summary
