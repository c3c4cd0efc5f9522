"""Checkpoint files of the runner: their plain content, and the newest one of a directory."""

from __future__ import annotations

import logging
import os.path as osp
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from hookline.checkpoint import CheckpointError, CheckpointStore
from hookline.compat import unpickle
from hookline.compat.mmengine.logging import HistoryBuffer, print_log

VERSIONS = "module_versions"  # the versions of modules, which torch keeps beside the weights


def load_from_local(filename: str | Path, map_location: Any = None) -> dict[str, Any]:
    """Return the content of a local checkpoint of MMEngine, MMCV or Hookline; nothing in it runs.

    Histories of the message hub become history buffers again.
    """
    path = Path(osp.expanduser(filename))
    if not path.is_file():
        raise FileNotFoundError(f"{path} can not be found.")
    checkpoint = unpickle.load(path)
    versions = checkpoint.pop(VERSIONS, None)
    if versions is not None:
        checkpoint["state_dict"] = OrderedDict(checkpoint["state_dict"])
        vars(checkpoint["state_dict"])["_metadata"] = versions
    hub = checkpoint.get("message_hub")
    if isinstance(hub, dict) and isinstance(hub.get("log_scalars"), dict):
        hub["log_scalars"] = {key: _as_history(each) for key, each in hub["log_scalars"].items()}
    if map_location in (None, "cpu", "default"):
        return checkpoint
    return _moved(checkpoint, map_location)


def _as_history(value: Any) -> Any:
    if isinstance(value, dict) and "log_history" in value:
        return HistoryBuffer.from_plain(value)
    return value


def _moved(checkpoint: dict[str, Any], map_location: Any) -> dict[str, Any]:
    """Return a checkpoint with its tensors on a device, or where a function puts their storage."""

    def move(tensor: torch.Tensor) -> torch.Tensor:
        if not callable(map_location):
            return tensor.to(map_location)
        storage = map_location(tensor.untyped_storage(), "cpu")
        return tensor if storage is None else tensor.to(storage.device)

    moved: dict[str, Any] = tree_map_only(torch.Tensor, move, checkpoint)
    for key, part in checkpoint.items():
        if isinstance(part, OrderedDict):
            vars(moved[key]).update(vars(part))  # the versions of modules
    return moved


def storable(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without values that have no plain form; log the removed ones."""
    content = dict(checkpoint)
    versions = getattr(content.get("state_dict"), "_metadata", None)
    if versions is not None:  # An attribute of the weights, which plain data cannot have.
        content[VERSIONS] = versions
    lost: list[str] = []
    result: dict[str, Any] = unpickle.as_plain(content, lost=lost)
    if lost:
        print_log(
            "not saved, because a checkpoint holds only tensors and plain values: "
            f"{', '.join(lost)}",
            "current",
            logging.WARNING,
        )
    return result


def find_latest_checkpoint(path: str | Path) -> str | None:
    """Return the newest intact checkpoint of a work directory, or None; log those skipped.

    It is found by its name, so the directory may have been moved.
    """
    directory = Path(path)
    names: list[str] = []
    last = directory / "last_checkpoint"
    if last.is_file():
        text = last.read_text(encoding="utf-8").strip()
        name = osp.basename(text)
        if osp.isfile(text) and not (directory / name).is_file():
            return text
        names.append(name)
    store = CheckpointStore(directory)
    known: set[str] = set()
    for entry in reversed(store.entries()):
        known.update(entry.names)
        if not entry.name.startswith("best_"):
            names.append(entry.name)
    for name in dict.fromkeys(names):
        if _is_intact(store, name, is_known=name in known):
            return str(directory / name)
    return None


def _is_intact(store: CheckpointStore, name: str, is_known: bool) -> bool:
    """Return whether a file can be resumed from; log why not.

    A file that differs from its checksum but can be read was edited by its owner: it counts.
    """
    path = store.directory / name
    if not path.is_file():
        return False
    try:
        if is_known:
            store.verify(name)
    except CheckpointError as error:
        try:
            unpickle.load(path)
        except CheckpointError:
            print_log(f"skipped {error}", "current", logging.WARNING)
            return False
        print_log(f"{error}: it can be read, so it was edited", "current", logging.WARNING)
    return True
