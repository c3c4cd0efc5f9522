"""Weights to give away: a checkpoint without everything that only training needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from hookline.checkpoint.files import FileSystem, HashingWriter, failure, make_directories, replace_file, write_temporary
from hookline.checkpoint.formats import check_plain, serialize
from hookline.errors import ConfigError, suggest

FORMATS = ("safetensors", "pth")


def publish(
    checkpoint: Mapping[str, Any],
    path_stem: str | os.PathLike[str],
    format: str = "safetensors",
    keys: Sequence[str] = ("state_dict",),
) -> Path:
    """Write the weights (the averaged ones if there are any) to `<stem>-<8 digits of the file's sha256>.<format>`.

    `keys` are the parts to keep; a .pth file can hold any of them, safetensors only the weights.
    """
    if format not in FORMATS:
        raise ConfigError(f"unknown format {format!r}{suggest(format, FORMATS)}")
    parts = _parts(checkpoint, keys)
    if format == "safetensors" and set(parts) != {"state_dict"}:
        raise ConfigError(f"safetensors holds only 'state_dict', not {', '.join(sorted(parts))}; use format 'pth'")
    stem, fs = Path(path_stem), FileSystem()
    fill = _fill_safetensors if format == "safetensors" else serialize
    try:
        make_directories(fs, stem.parent)
        written = write_temporary(fs, stem.parent, lambda stream: fill(parts, stream))
        path = stem.with_name(f"{stem.name}-{written.sha256[:8]}.{format}")
        fs.rename(written.path, path)
        fs.sync_directory(stem.parent)
    except OSError as error:
        raise failure(fs, stem, error) from error
    return path


def write_checkpoint(checkpoint: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a whole checkpoint to a file of its own, durably; an existing file is replaced only when the new one is complete."""
    path, fs, plain = Path(path), FileSystem(), check_plain(checkpoint)
    try:
        make_directories(fs, path.parent)
        replace_file(fs, path, lambda stream: serialize(plain, stream))
        fs.sync_directory(path.parent)
    except OSError as error:
        raise failure(fs, path, error) from error


def _parts(checkpoint: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """What is kept, with the averaged weights in the place of the raw ones."""
    plain = check_plain(checkpoint)
    if "ema_state_dict" in plain and "state_dict" in keys:
        plain["state_dict"] = plain["ema_state_dict"]
    for key in keys:
        if key not in plain:
            raise ConfigError(f"the checkpoint has no {key!r}{suggest(key, plain)}")
    return {key: plain[key] for key in keys}


def _fill_safetensors(parts: Mapping[str, Any], stream: HashingWriter) -> None:
    import safetensors.torch

    weights, storages = {}, set()
    for name, value in parts["state_dict"].items():
        if not isinstance(value, Tensor):
            raise ConfigError(f"state_dict.{name}: a {type(value).__name__}; safetensors holds only tensors, use format 'pth'")
        value = value.cpu().contiguous()
        storage = value.untyped_storage().data_ptr()
        weights[name] = value.clone() if storage in storages else value  # the format has no shared tensors
        storages.add(storage)
    stream.write(safetensors.torch.save(weights))
