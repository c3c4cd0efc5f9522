"""The small helpers of `mmcv.utils` that hooks and runners use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def is_str(value: Any) -> bool:
    return isinstance(value, str)


def is_seq_of(seq: Any, expected_type: Any, seq_type: type | None = None) -> bool:
    """Whether it is a sequence whose items are all of a type."""
    kind: Any = seq_type or Sequence
    return isinstance(seq, kind) and all(isinstance(item, expected_type) for item in seq)


def is_list_of(seq: Any, expected_type: Any) -> bool:
    return is_seq_of(seq, expected_type, list)


def is_tuple_of(seq: Any, expected_type: Any) -> bool:
    return is_seq_of(seq, expected_type, tuple)


def mkdir_or_exist(dir_name: str | os.PathLike[str], mode: int = 0o777) -> None:
    if dir_name != "":
        os.makedirs(os.path.expanduser(dir_name), mode=mode, exist_ok=True)


def scandir(
    dir_path: str | os.PathLike[str], suffix: str | tuple[str, ...] | None = None, recursive: bool = False, case_sensitive: bool = True
) -> Iterator[str]:
    """The files of a folder, relative to it, whose names end in `suffix`; hidden ones are left out."""
    endings = (suffix,) if isinstance(suffix, str) else suffix
    if endings is not None and not case_sensitive:
        endings = tuple(ending.lower() for ending in endings)
    root = Path(dir_path)
    for path in sorted(root.rglob("*") if recursive else root.iterdir()):
        name = path.name if case_sensitive else path.name.lower()
        if path.is_file() and not path.name.startswith(".") and (endings is None or name.endswith(endings)):
            yield str(path.relative_to(root))
