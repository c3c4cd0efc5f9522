"""Small helpers of `mmcv.utils` that hooks and runners use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


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
