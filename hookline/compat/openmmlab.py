"""Helpers that the interfaces of MMEngine and MMCV share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hookline.priority import Priority, get_priority

MODULE_PREFIX = ((r"^module\.", ""),)  # removes the prefix of a model's wrapper


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


def rename_weights(
    weights: Mapping[str, Any], revise_keys: Iterable[tuple[str, str]] = MODULE_PREFIX
) -> dict[str, Any]:
    """Return the weights with each pattern replaced in their names."""
    renamed = dict(weights)
    for pattern, replacement in revise_keys:
        renamed = {re.sub(pattern, replacement, key): value for key, value in renamed.items()}
    return renamed


def match_weights(
    model_weights: Mapping[str, Any], loaded: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the loaded weights that fit the model, and descriptions of all differences."""
    missing = []
    fitting = {}
    problems = []
    for key, value in model_weights.items():
        if key not in loaded:
            if "num_batches_tracked" not in key:
                missing.append(key)
        elif value.shape == loaded[key].shape:
            fitting[key] = loaded[key]
        else:
            shapes = f"{tuple(loaded[key].shape)} in the file, {tuple(value.shape)} in the model"
            problems.append(f"size mismatch for {key}: {shapes}")
    unexpected = [key for key in loaded if key not in model_weights]
    if unexpected:
        problems.append(f"unexpected key in source state_dict: {', '.join(unexpected)}")
    if missing:
        problems.append(f"missing keys in source state_dict: {', '.join(missing)}")
    return fitting, problems


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
