"""Publish weights: checkpoints without the state that only training needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hookline.checkpoint.files import (
    FileSystem,
    HashingWriter,
    make_directories,
    replace_file,
    save_error,
    write_temporary,
)
from hookline.checkpoint.formats import check_plain, serialize
from hookline.checkpoint.loading import with_shards
from hookline.checkpoint.names import is_reserved_name, temporary_name
from hookline.checkpoint.store import CheckpointStore
from hookline.errors import ConfigError, Suggestion, suggest

FORMATS = ("safetensors", "pth")
USE_PTH = Suggestion(advice="use format 'pth'")


def publish(
    checkpoint: Mapping[str, Any],
    path_stem: str | os.PathLike[str],
    format: str = "safetensors",
    keys: Sequence[str] = ("state_dict",),
) -> Path:
    """Write weights to `<stem>-<8 digits of the file's sha256>.<format>` and return the path.

    If the checkpoint has averaged weights, these are published.

    Args:
        checkpoint: The checkpoint.
        path_stem: The path without the hash and the suffix.
        format: `safetensors`, which holds weights only, or `pth`.
        keys: The parts of the checkpoint to keep.
    """
    if format not in FORMATS:
        raise ConfigError(
            f"unknown format {format!r}",
            parameter="format",
            suggestion=suggest(format, FORMATS),
        )
    parts = _select(checkpoint, keys)
    if format == "safetensors":
        _check_weights_only(parts)
    fill = _fill_safetensors if format == "safetensors" else serialize
    stem = Path(path_stem)
    fs = FileSystem()
    try:
        make_directories(fs, stem.parent)
        temporary = stem.parent / temporary_name()
        written = write_temporary(fs, temporary, lambda stream: fill(parts, stream))
        path = stem.with_name(f"{stem.name}-{written.sha256[:8]}.{format}")
        fs.rename(written.path, path)
        fs.sync_directory(stem.parent)
    except OSError as error:
        raise save_error(fs, stem, error) from error
    return path


def publish_recommended(store: CheckpointStore, keys: Sequence[str]) -> None:
    """Write parts of the last and the best checkpoints of a store to files beside them."""
    for entry in store.entries():
        for name in entry.names:
            if is_reserved_name(name):
                checkpoint = with_shards(store.load(name), store.directory)
                publish(checkpoint, store.directory / name.removesuffix(".pth"), "pth", keys)


def write_checkpoint(checkpoint: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a checkpoint to a file that belongs to no store.

    The write is durable. An existing file is replaced only when the new one is complete.
    """
    path = Path(path)
    plain = check_plain(checkpoint)
    fs = FileSystem()
    try:
        make_directories(fs, path.parent)
        replace_file(fs, path, lambda stream: serialize(plain, stream))
        fs.sync_directory(path.parent)
    except OSError as error:
        raise save_error(fs, path, error) from error


def _select(checkpoint: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return parts of a checkpoint, with averaged weights in place of the raw ones."""
    plain = check_plain(checkpoint)
    if "ema_state_dict" in plain and "state_dict" in keys:
        plain["state_dict"] = plain["ema_state_dict"]
    for key in keys:
        if key not in plain:
            raise ConfigError(
                f"the checkpoint has no {key!r}", parameter="keys", suggestion=suggest(key, plain)
            )
    return {key: plain[key] for key in keys}


def _check_weights_only(parts: Mapping[str, Any]) -> None:
    if set(parts) != {"state_dict"}:
        found = ", ".join(sorted(parts))
        raise ConfigError(
            f"safetensors holds only 'state_dict', not {found}",
            parameter="keys",
            suggestion=USE_PTH,
        )
    weights = parts["state_dict"]
    if not isinstance(weights, Mapping):
        kind = type(weights).__name__
        raise ConfigError(f"must hold weights, not a {kind}", path=("state_dict",))
    for name, value in weights.items():
        if not isinstance(value, Tensor):
            raise ConfigError(
                f"safetensors holds only tensors, not a {type(value).__name__}",
                path=("state_dict", name),
                suggestion=USE_PTH,
            )
        if value.layout is not torch.strided or value.is_quantized:
            message = "safetensors holds no sparse or quantized tensors"
            raise ConfigError(message, path=("state_dict", name), suggestion=USE_PTH)


def _fill_safetensors(parts: Mapping[str, Any], stream: HashingWriter) -> None:
    import safetensors.torch

    weights = {}
    storages = set()
    for name, value in parts["state_dict"].items():
        tensor = value.cpu().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        if storage in storages:  # the format does not support shared memory
            tensor = tensor.clone()
        storages.add(storage)
        weights[name] = tensor
    stream.write(safetensors.torch.save(weights))
