"""What two finished runs have in common, and what differs first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore, diff

# Clocks differ between any two runs, and so does where they lie.
CLOCKS = ("time", "data_time", "eta", "wall_time")
CLOCK_GROUPS = ("time/", "system/", "memory/", "throughput/")
IDENTITIES = ("run_id", "task_id")  # under which trackers know a run


def compare_runs(straight: Path, pieces: Path) -> dict[str, list[str]]:
    """The differences between two work directories by subject, each list empty where they agree."""
    one, two = _last_checkpoint(straight), _last_checkpoint(pieces)
    hooks = one.get("hooks", {}), two.get("hooks", {})
    orders = tuple(states.pop("BatchTraceHook", {}).get("digests", []) for states in hooks)
    subjects: dict[str, list[str]] = {
        "weights": diff(one["state_dict"], two["state_dict"]) + diff(one.get("ema_state_dict"), two.get("ema_state_dict")),
        "optimizer and schedules": [text for key in ("optimizer", "scheduler", "scaler") for text in diff(one.get(key), two.get(key))],
        "data order": _first_difference(*orders),
        "counters, metrics and best": diff(_meta(one), _meta(two)),
        "random numbers": diff(one["rng"], two["rng"]),
        "position in the data": diff(one.get("loader"), two.get("loader")),
        "hooks' state": diff(_without_clocks(hooks[0]), _without_clocks(hooks[1])),
        "log": _first_difference(_log(straight), _log(pieces)),
    }
    return subjects


def _last_checkpoint(work_dir: Path) -> dict[str, Any]:
    store = CheckpointStore(work_dir)
    entry = store.latest()
    if entry is None:
        raise FileNotFoundError(f"{work_dir}: the run left no good checkpoint to compare")
    return store.load(entry)


def _meta(checkpoint: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in checkpoint["meta"].items() if key not in ("time", "config", "versions")}


def _without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_clocks(item) for key, item in value.items() if not _is_clock(str(key))}
    return value


def _is_clock(name: str) -> bool:
    return name in (*CLOCKS, *IDENTITIES) or any(word in name for word in ("seconds", "elapsed", "duration", "wall", "started"))


def _log(work_dir: Path) -> list[str]:
    path = work_dir / "log.jsonl"
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kept = [{key: value for key, value in row.items() if key not in CLOCKS and not key.startswith(CLOCK_GROUPS)} for row in rows]
    return [json.dumps(row, sort_keys=True) for row in kept]


def _first_difference(one: list[str], two: list[str]) -> list[str]:
    for index, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return [f"entry {index + 1} differs: {left} and {right}"]
    return [] if len(one) == len(two) else [f"{len(one)} entries and {len(two)}"]
