"""Helpers that the interfaces of MMEngine and MMCV share."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch.distributed as dist

from hookline.dist import current_world
from hookline.priority import Priority, get_priority


def alias(name: str) -> Any:
    """Return a property that is another name of an attribute; deleting it sets None."""

    def put(self: Any, value: Any = None) -> None:
        setattr(self, name, value)

    return property(lambda self: getattr(self, name), put, put)


def is_str(value: Any) -> bool:
    return isinstance(value, str)


def is_seq_of(seq: Any, expected_type: Any, seq_type: type | None = None) -> bool:
    """Return whether an object is a sequence with items of one type only."""
    required: Any = seq_type or Sequence
    if not isinstance(seq, required):
        return False
    return all(isinstance(item, expected_type) for item in seq)


def is_list_of(seq: Any, expected_type: Any) -> bool:
    return is_seq_of(seq, expected_type, list)


def is_tuple_of(seq: Any, expected_type: Any) -> bool:
    return is_seq_of(seq, expected_type, tuple)


def mkdir_or_exist(dir_name: str | os.PathLike[str], mode: int = 0o777) -> None:
    if dir_name != "":
        os.makedirs(os.path.expanduser(dir_name), mode=mode, exist_ok=True)


def scandir(
    dir_path: str | os.PathLike[str],
    suffix: str | tuple[str, ...] | None = None,
    recursive: bool = False,
    case_sensitive: bool = True,
) -> Iterator[str]:
    """Yield the files of a directory, relative to it, without hidden files.

    Args:
        dir_path: The directory.
        suffix: One or several endings of the names; None for all files.
        recursive: Include the files of subdirectories.
        case_sensitive: Compare the endings with regard to case.
    """
    endings = (suffix,) if isinstance(suffix, str) else suffix
    if endings is not None and not case_sensitive:
        endings = tuple(ending.lower() for ending in endings)
    root = Path(dir_path)
    for path in sorted(root.rglob("*") if recursive else root.iterdir()):
        if not path.is_file() or path.name.startswith("."):
            continue
        name = path.name if case_sensitive else path.name.lower()
        if endings is None or name.endswith(endings):
            yield str(path.relative_to(root))


def set_sampler_epoch(loader: Any, epoch: int) -> None:
    """Set the epoch of a loader's sampler, or of the sampler of its batch sampler."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    for owner in (loader, batch_sampler):
        sampler: Any = getattr(owner, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
            return


def gather_results(results: list[Any], size: int) -> list[Any] | None:
    """Return the results of all ranks, each of which has every n-th one; None except on rank 0.

    Results of samples that were repeated to fill the last round are dropped.
    """
    world = current_world()
    if world.size == 1:
        return results[:size]
    parts: list[Any] | None = [None] * world.size if world.is_main else None
    dist.gather_object(results, parts)
    if parts is None:
        return None
    missing = object()
    ordered = []
    for row in itertools.zip_longest(*parts, fillvalue=missing):
        for item in row:
            if item is not missing:
                ordered.append(item)
    return ordered[:size]


def format_stages(hooks: Mapping[str, Sequence[Any]]) -> str:
    """Return a table of the hooks of each stage, in their order."""
    lines = []
    for stage, hooks_of_stage in hooks.items():
        if not hooks_of_stage:
            continue
        lines.append(f"{stage}:")
        for hook in hooks_of_stage:
            lines.append(f"({_priority_name(hook.priority):<12}) {type(hook).__name__:<35}")
        lines.append(" -------------------- ")
    return "\n".join(lines)


def _priority_name(priority: int | str | Priority) -> str:
    value = get_priority(priority)
    for named in Priority:
        if named == value:
            return named.name
    return str(value)
