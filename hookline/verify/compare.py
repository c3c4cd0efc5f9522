"""What two runs have in common, and what differs first, apart from what differs between any two runs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from hookline.checkpoint import CheckpointStore, diff

# Clocks differ between any two runs, and so does where they lie.
CLOCKS = ("time", "data_time", "eta", "wall_time")
CLOCK_GROUPS = ("time/", "system/", "memory/", "throughput/")
IDENTITIES = ("run_id", "task_id")  # under which trackers know a run
PLACES = ("work_dir", "resume")
LEFT_OUT = "times, memory, throughput, the ids of trackers, work_dir and resume"


def compare_runs(straight: Path, pieces: Path) -> dict[str, list[str]]:
    """The differences between two work directories by subject, each list empty where they agree."""
    one, two = _last_checkpoint(straight), _last_checkpoint(pieces)
    orders = [checkpoint.get("hooks", {}).pop("BatchTraceHook", {}).get("digests", []) for checkpoint in (one, two)]
    parts = compare_checkpoints(one, two)

    def of(*names: str) -> list[str]:
        return [text for name in names for text in parts.get(name, [])]

    return {
        "weights": of("state_dict", "ema_state_dict"),
        "optimizer and schedules": of("optimizer", "scheduler", "scaler"),
        "data order": _first_difference(*orders),
        "counters, metrics and best": of("meta"),
        "random numbers": of("rng"),
        "position in the data": of("loader"),
        "hooks' state": of("hooks"),
        "log": _first_difference(_log(straight), _log(pieces)),
    }


def compare_checkpoints(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, list[str]]:
    """The differences between two checkpoints by part, each list empty where they agree; what is `LEFT_OUT` does not count."""
    first, second = _parts(one), _parts(two)
    return {name: _compare_part(name, first, second) for name in {**first, **second}}


def _parts(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a checkpoint without what differs between any two runs; the config is one of its own."""
    parts = {name: _comparable(name, part) for name, part in checkpoint.items()}
    if isinstance(parts.get("meta"), Mapping) and isinstance(config := parts["meta"].pop("config", None), Mapping):
        parts["config"] = {key: _anywhere(value, config.get("work_dir")) for key, value in config.items() if key not in PLACES}
    return parts


def _compare_part(name: str, one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    if name not in one or name not in two:
        return [f"only in the {'first' if name in one else 'second'}"]
    return [text.removeprefix(": ") for text in diff(one[name], two[name])]  # a part that is one value has no path in it


def _comparable(name: str, part: Any) -> Any:
    if name == "by_rank":  # each process's own, packed
        states = [torch.load(io.BytesIO(bytes(packed.numpy())), weights_only=True) for packed in part]
        return [{key: _comparable(key, value) for key, value in state.items()} for state in states]
    if not isinstance(part, Mapping):
        return part
    if name == "meta":
        return {key: value for key, value in part.items() if key != "time"}
    if name == "hooks":
        return {hook: _without_clocks(state) for hook, state in part.items()}
    if name == "events":
        return {scalar: values for scalar, values in part.items() if not _is_measured(scalar)}
    return part


def _anywhere(value: Any, work_dir: str | None) -> Any:
    """A value of a config that does not tell where the work directory is that its paths lie in."""
    if isinstance(value, Mapping):
        return {key: _anywhere(item, work_dir) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_anywhere(item, work_dir) for item in value]
    inside = isinstance(value, str) and work_dir and f"{value}/".startswith(f"{work_dir}/")
    return f"${{work_dir}}{value.removeprefix(work_dir)}" if inside else value


def _last_checkpoint(work_dir: Path) -> dict[str, Any]:
    store = CheckpointStore(work_dir)
    entry = store.latest()
    if entry is None:
        raise FileNotFoundError(f"{work_dir}: the run left no good checkpoint to compare")
    return store.load(entry)


def _without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_clocks(item) for key, item in value.items() if not _is_clock(str(key))}
    return value


def _is_clock(name: str) -> bool:
    return name in (*CLOCKS, *IDENTITIES) or any(word in name for word in ("seconds", "elapsed", "duration", "wall", "started"))


def _is_measured(scalar: str) -> bool:
    """Whether a scalar tells of the machine and not of the training."""
    return scalar in CLOCKS or scalar.startswith(CLOCK_GROUPS)


def _log(work_dir: Path) -> list[str]:
    path = work_dir / "log.jsonl"
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [json.dumps({key: value for key, value in row.items() if not _is_measured(key)}, sort_keys=True) for row in rows]


def _first_difference(one: list[str], two: list[str]) -> list[str]:
    for index, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return [f"entry {index + 1} differs: {left} and {right}"]
    return [] if len(one) == len(two) else [f"{len(one)} entries and {len(two)}"]
