"""Read the small files of a run, each of which may be missing or damaged."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import yaml

from hookline.checkpoint import CheckpointStore, Entry
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.names import LEDGERS
from hookline.events.describe import flat

MAX_TEXT_BYTES = 1_000_000  # of a config or cost file
MAX_DEPTH = 50  # levels of a config
MAX_METRIC = 1e300  # larger values are shown as text: JSON has no infinity
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # plain values only, either of them

Data = dict[str, Any]


def read_text(path: Path) -> str:
    """Return the beginning of a text file; "" if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(MAX_TEXT_BYTES).decode(errors="replace")
    except OSError:
        return ""


def read_object(path: Path) -> Data:
    """Return the object in a JSON file; an empty one if there is none."""
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def read_costs(path: Path) -> Data | None:
    """Return the table of the costs of hooks; None if there is none."""
    table = read_object(path)
    return table if isinstance(table.get("hooks"), list) else None


def parse_settings(config: str) -> dict[str, str]:
    """Return the values of a YAML config by dotted name.

    None are returned for an invalid config, and for one with aliases or great depth. Ours never
    have them, and they can take forever to expand.
    """
    try:
        if not _is_simple(config):
            return {}
        values = yaml.load(config, Loader=YAML_LOADER)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {key: str(value) for key, value in flat(values).items()}


def read_checkpoints(folder: Path, directory: Any) -> tuple[list[Data], list[Data]]:
    """Return the entries of the manifest, newest first, and problems with the manifest.

    Args:
        folder: The work directory.
        directory: The directory of the checkpoints according to the timeline.
    """
    place = folder
    has_manifest = any((folder / name).exists() for name in LEDGERS)
    if not has_manifest and isinstance(directory, str):
        place = Path(directory)
    try:
        entries = CheckpointStore(place).entries()
    except CheckpointError as error:
        return [], [{"time": time.time(), "level": "error", "text": str(error)}]
    return [_describe_entry(entry) for entry in reversed(entries)], []


def _is_simple(config: str) -> bool:
    """Return whether a YAML text has no aliases and no great depth."""
    depth = 0
    for event in yaml.parse(config, Loader=YAML_LOADER):
        if isinstance(event, yaml.events.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.events.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH or isinstance(event, yaml.events.AliasEvent):
            return False
    return True


def _describe_entry(entry: Entry) -> Data:
    metrics: dict[str, float | str] = {}
    for name, value in entry.metrics.items():
        metrics[name] = float(f"{value:.6g}") if abs(value) < MAX_METRIC else str(value)
    note = ""
    if not entry.finite:
        note = "its weights are not finite"
    elif not entry.resumable:
        note = "for inspection only"
    return {
        "names": list(entry.names),
        "epoch": entry.epoch,
        "iter": entry.step,
        "size": entry.size,
        "time": entry.time,
        "metrics": metrics,
        "note": note,
    }
