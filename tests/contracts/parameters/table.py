"""The rows of all hooks, and the few parameters that cannot be observed in a test."""

from __future__ import annotations

from tests.contracts.parameters import (
    checkpointing,
    control,
    evaluation,
    loggers,
    optimization,
    pictures,
    profiling,
    schedules,
    trackers,
)
from tests.contracts.parameters.rows import Row

FAMILIES = (
    checkpointing,
    control,
    evaluation,
    loggers,
    optimization,
    pictures,
    profiling,
    schedules,
    trackers,
)

TABLE: dict[str, list[Row]] = {}
for _family in FAMILIES:
    TABLE.update(_family.ROWS)

# By hook and parameter, the reason why no row can observe it.
UNOBSERVED = {
    ("ClearMLHook", "offline"): "false contacts the ClearML server",
    ("MemoryProfilerHook", "log_gpu"): "measures the memory of a CUDA device",
    ("MemorySnapshotHook", "interval"): "records the memory of a CUDA device",
    ("MemorySnapshotHook", "max_entries"): "records the memory of a CUDA device",
    ("SwanLabHook", "offline"): "false contacts the SwanLab server",
    ("TrackioHook", "space_id"): "sends the run to a Hugging Face Space",
}
