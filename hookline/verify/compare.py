"""Compare two runs or checkpoints, without the values that differ between any two runs."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from hookline.checkpoint import CheckpointStore, diff
from hookline.checkpoint.formats import deserialize
from hookline.files import read_lines

NOT_COMPARED = "times, memory, throughput, the ids of trackers, work_dir and resume"

CLOCKS = ("time", "data_time", "eta", "wall_time")
CLOCK_WORDS = ("seconds", "elapsed", "duration", "wall", "started")
MEASURED_GROUPS = ("time/", "system/", "memory/", "throughput/")
TRACKER_IDS = ("run_id", "task_id")
LOCATIONS = ("work_dir", "resume")
UNSEEDED_BY_DEFAULT = {"python", "numpy"}


def compare_runs(straight: Path, pieces: Path) -> dict[str, list[str]]:
    """Return the differences between two work directories by subject; empty lists for equal ones.

    The random numbers of Python and NumPy are not compared if the runs did not seed them.
    """
    one = _last_checkpoint(straight)
    two = _last_checkpoint(pieces)
    trace_one = _pop_trace(one)
    trace_two = _pop_trace(two)
    unseeded = _changed_keys(trace_one["initial"], trace_two["initial"])
    for checkpoint in (one, two):
        compared = {name: checkpoint.get(name) for name in ("rng", "loader")}
        _drop_generators(compared, UNSEEDED_BY_DEFAULT & unseeded)
    parts = compare_checkpoints(one, two)

    def join(*names: str) -> list[str]:
        texts: list[str] = []
        for name in names:
            texts += parts.get(name, [])
        return texts

    initial = []
    if "weights" in unseeded:
        initial.append("differ: seed torch before the model is made")
    return {
        "initial weights": initial,
        "weights": join("state_dict", "ema_state_dict"),
        "optimizer and schedules": join("optimizer", "scheduler", "scaler"),
        "data order": _first_difference(trace_one["digests"], trace_two["digests"]),
        "counters, metrics and best": join("meta"),
        "random numbers": join("rng"),
        "position in the data": join("loader"),
        "hooks' state": join("hooks"),
        "state of each rank": join("by_rank"),
        "state of losses, metrics and services": join("objects"),
        "log": _first_difference(_log(straight), _log(pieces)),
    }


def compare_checkpoints(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the differences between two checkpoints by part; empty lists for equal ones.

    The values named in `NOT_COMPARED` are not compared.
    """
    first = _comparable_parts(one)
    second = _comparable_parts(two)
    return {name: _compare_part(name, first, second) for name in {**first, **second}}


def _compare_part(name: str, one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    if name not in two:
        return ["only in the first"]
    if name not in one:
        return ["only in the second"]
    # A part that is a single value has no path: its text begins with the separator.
    return [text.removeprefix(": ") for text in diff(one[name], two[name])]


def _comparable_parts(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a checkpoint that can be compared; the config becomes a separate part."""
    parts = {name: _comparable(name, part) for name, part in checkpoint.items()}
    meta = parts.get("meta")
    if isinstance(meta, Mapping):
        config = parts["meta"].pop("config", None)
        if isinstance(config, Mapping):
            parts["config"] = _comparable_config(config)
    return parts


def _comparable(name: str, part: Any) -> Any:
    if name == "by_rank":
        return [_comparable_rank_state(packed) for packed in part]
    if not isinstance(part, Mapping):
        return part
    if name == "meta":
        return {key: value for key, value in part.items() if key != "time"}
    if name == "hooks":
        return {hook: _without_clocks(state) for hook, state in part.items()}
    if name == "events":
        return {
            scalar: _without_times(values)
            for scalar, values in part.items()
            if not _is_measured(scalar)
        }
    return part


def _without_times(series: Any) -> Any:
    """Return the state of a scalar without the wall times of its values."""
    if not isinstance(series, Mapping):
        return series
    return {key: value for key, value in series.items() if key != "times"}


def _comparable_rank_state(packed: torch.Tensor) -> dict[str, Any]:
    state = deserialize(io.BytesIO(bytes(packed.numpy())), "by_rank")
    return {key: _comparable(key, value) for key, value in state.items()}


def _comparable_config(config: Mapping[str, Any]) -> dict[str, Any]:
    comparable = {}
    for key, value in config.items():
        if key not in LOCATIONS:
            comparable[key] = _without_work_dir(value, config.get("work_dir"))
    return comparable


def _without_work_dir(value: Any, work_dir: str | None) -> Any:
    """Replace the work directory in paths of a config value by `${work_dir}`."""
    if isinstance(value, Mapping):
        return {key: _without_work_dir(item, work_dir) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_work_dir(item, work_dir) for item in value]
    if isinstance(value, str) and work_dir and f"{value}/".startswith(f"{work_dir}/"):
        return f"${{work_dir}}{value.removeprefix(work_dir)}"
    return value


def _last_checkpoint(work_dir: Path) -> dict[str, Any]:
    store = CheckpointStore(work_dir)
    entry = store.latest()
    if entry is None:
        raise FileNotFoundError(f"{work_dir}: no intact checkpoint to compare")
    return store.load(entry)


def _pop_trace(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Remove the state of BatchTraceHook from a checkpoint and return it."""
    trace: dict[str, Any] = checkpoint.get("hooks", {}).pop("BatchTraceHook", {})
    return {"initial": {}, "digests": [], **trace}


def _drop_generators(part: Any, names: Collection[str]) -> None:
    """Remove the states of global generators from every `rng` in a part of a checkpoint."""
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        if key != "rng":
            _drop_generators(value, names)
            continue
        for name in names:
            value.pop(name, None)


def _changed_keys(one: Mapping[str, Any], two: Mapping[str, Any]) -> set[str]:
    return {name for name in {**one, **two} if one.get(name) != two.get(name)}


def _without_clocks(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_clocks(item) for key, item in value.items() if not _is_clock(str(key))}


def _is_clock(name: str) -> bool:
    """Return whether a value of a hook's state is a time or an id."""
    if name in CLOCKS or name in TRACKER_IDS:
        return True
    return any(word in name for word in CLOCK_WORDS)


def _is_measured(scalar: str) -> bool:
    """Return whether a scalar depends on the machine and not on the training."""
    return scalar in CLOCKS or scalar.startswith(MEASURED_GROUPS)


def _log(work_dir: Path) -> list[str]:
    path = work_dir / "log.jsonl"
    if not path.exists():
        return []
    rows = []
    for line in read_lines(path):
        row = {key: value for key, value in json.loads(line).items() if not _is_measured(key)}
        rows.append(json.dumps(row, sort_keys=True))
    return rows


def _first_difference(one: list[str], two: list[str]) -> list[str]:
    for index, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return [f"entry {index + 1} differs: {left} and {right}"]
    if len(one) != len(two):
        return [f"{len(one)} entries and {len(two)}"]
    return []
