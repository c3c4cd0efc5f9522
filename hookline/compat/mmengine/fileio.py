"""`mmengine.fileio`: load and dump plain data, and join paths; for local files only."""

from __future__ import annotations

import json
import os
import os.path as osp
from pathlib import Path
from typing import Any

import yaml

from hookline.compat.missing import not_covered

PICKLES = ("pkl", "pickle")


def load(file: str | Path, file_format: str | None = None, **kwargs: Any) -> Any:
    """Return the content of a JSON or YAML file.

    Pickles are refused, because loading one can execute arbitrary code.
    """
    kind = file_format or str(file).rsplit(".", 1)[-1]
    if kind in PICKLES:
        raise TypeError(
            f"{file}: pickles are not loaded, because they can execute arbitrary code; use JSON, "
            "or pickle.load if you trust the file"
        )
    if kind not in ("json", "yaml", "yml"):
        raise TypeError(f"Unsupported format: {kind}")
    with open(file, encoding="utf-8") as stream:
        if kind == "json":
            return json.load(stream)
        return yaml.safe_load(stream)


def dump(
    obj: Any, file: str | Path | None = None, file_format: str | None = None, **kwargs: Any
) -> str | None:
    """Write data as JSON, YAML or a pickle; return the text if no file is given."""
    kind = file_format or str(file).rsplit(".", 1)[-1]
    if kind in PICKLES and file is not None:
        import pickle

        with open(file, "wb") as stream:
            pickle.dump(obj, stream)
        return None
    if kind not in ("json", "yaml", "yml"):
        raise TypeError(f"Unsupported format: {kind}")
    if kind == "json":
        text = json.dumps(obj, default=_as_plain, **kwargs)
    else:
        text = yaml.safe_dump(obj, **kwargs)
    if file is None:
        return text
    os.makedirs(osp.dirname(osp.abspath(file)), exist_ok=True)
    Path(file).write_text(text, encoding="utf-8")
    return None


def _as_plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, range)):
        return list(value)
    raise TypeError(f"{type(value)} is unsupported for json dump")


def join_path(filepath: str | Path, *filepaths: str | Path, backend_args: Any = None) -> str:
    return osp.join(filepath, *filepaths)


def exists(filepath: str | Path, backend_args: Any = None) -> bool:
    return osp.exists(filepath)


def isfile(filepath: str | Path, backend_args: Any = None) -> bool:
    return osp.isfile(filepath)


def isdir(filepath: str | Path, backend_args: Any = None) -> bool:
    return osp.isdir(filepath)


def get_text(filepath: str | Path, encoding: str = "utf-8", backend_args: Any = None) -> str:
    return Path(filepath).read_text(encoding)


def put_text(obj: str, filepath: str | Path, backend_args: Any = None) -> None:
    Path(filepath).write_text(obj, encoding="utf-8")


def get(filepath: str | Path, backend_args: Any = None) -> bytes:
    return Path(filepath).read_bytes()


def list_from_file(
    filename: str | Path,
    encoding: str = "utf-8",
    offset: int = 0,
    max_num: int = 0,
    prefix: str = "",
) -> list[str]:
    """Return the lines of a text file; `max_num` limits them, 0 stands for all."""
    lines = Path(filename).read_text(encoding).splitlines()[offset:]
    if max_num:
        lines = lines[:max_num]
    return [prefix + line.rstrip("\n\r") for line in lines]


__all__ = [
    "_as_plain",
    "dump",
    "exists",
    "get",
    "get_text",
    "isdir",
    "isfile",
    "join_path",
    "list_from_file",
    "load",
    "put_text",
]
__getattr__ = not_covered(
    __name__, __all__, {"FileClient": "only local files are covered: use paths"}
)
