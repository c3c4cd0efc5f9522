"""Loading and saving weights outside of a run, and what a runner's files hold."""

from __future__ import annotations

import logging
import os.path as osp
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline.checkpoint import CheckpointError, CheckpointStore, write_checkpoint
from hookline.compat import unpickle
from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.utils import apply_to

REVISE: Sequence[tuple[str, str]] = ((r"^module\.", ""),)


def _load_checkpoint(filename: str | Path, map_location: Any = None, logger: Any = None) -> dict[str, Any]:
    """The content of a local checkpoint file, of MMEngine, MMCV or Hookline; nothing in it is run."""
    if "://" in str(filename):
        raise ValueError(f"{filename}: only local files are covered; download it first")
    checkpoint = unpickle.load(osp.expanduser(filename))
    if map_location in (None, "cpu", "default"):
        return checkpoint
    if callable(map_location):
        raise ValueError("map_location: a device is covered, a function is not")
    return apply_to(checkpoint, lambda value: isinstance(value, torch.Tensor), lambda tensor: tensor.to(map_location))  # type: ignore[no-any-return]


def load_checkpoint(
    model: nn.Module,
    filename: str | Path,
    map_location: Any = None,
    strict: bool = False,
    logger: Any = None,
    revise_keys: Sequence[tuple[str, str]] = REVISE,
) -> dict[str, Any]:
    """Load a checkpoint's weights into a model; the whole checkpoint."""
    return _load_checkpoint_to_model(model, _load_checkpoint(filename, map_location), strict, logger, revise_keys)


def _load_checkpoint_to_model(
    model: nn.Module,
    checkpoint: dict[str, Any],
    strict: bool = False,
    logger: Any = None,
    revise_keys: Sequence[tuple[str, str]] = REVISE,
) -> dict[str, Any]:
    weights = checkpoint.get("state_dict", checkpoint)
    for pattern, replacement in revise_keys:
        weights = OrderedDict((re.sub(pattern, replacement, key), value) for key, value in weights.items())
    load_state_dict(model, weights, strict, logger)
    return checkpoint


def load_state_dict(module: nn.Module, state_dict: Mapping[str, Any], strict: bool = False, logger: Any = None) -> None:
    """Load what fits; the rest is an error if `strict`, else a warning that lists it."""
    own = module.state_dict()
    sizes = [
        f"size mismatch for {key}: {tuple(value.shape)} in the file, {tuple(own[key].shape)} in the model"
        for key, value in state_dict.items()
        if key in own and value.shape != own[key].shape
    ]
    fitting = {key: value for key, value in state_dict.items() if key in own and value.shape == own[key].shape}
    missing = [key for key in own if key not in state_dict and "num_batches_tracked" not in key]
    unexpected = [key for key in state_dict if key not in own]
    module.load_state_dict(fitting, strict=False)
    problems = [*sizes]
    problems += [f"unexpected key in source state_dict: {', '.join(unexpected)}"] if unexpected else []
    problems += [f"missing keys in source state_dict: {', '.join(missing)}"] if missing else []
    if problems:
        text = "\n".join(["The model and loaded state dict do not match exactly", *problems])
        if strict:
            raise RuntimeError(text)
        print_log(text, logger or "current", logging.WARNING)


def weights_of(filename: str | Path) -> dict[str, Any]:
    """The weights in a checkpoint file."""
    checkpoint = _load_checkpoint(filename)
    return checkpoint.get("state_dict", checkpoint)  # type: ignore[no-any-return]


def load_checkpoint_with_prefix(prefix: str, filename: str | Path) -> dict[str, Any]:
    """The weights of a part of a model, whose names begin with a prefix that is taken off."""
    prefix = prefix if prefix.endswith(".") else f"{prefix}."
    part = {key.removeprefix(prefix): value for key, value in weights_of(filename).items() if key.startswith(prefix)}
    if not part:
        raise AssertionError(f"{prefix} is not in the pretrained model")
    return part


def save_checkpoint(checkpoint: dict[str, Any], filename: str | Path, file_client_args: Any = None, backend_args: Any = None) -> None:
    """Write a checkpoint so that the file is whole or not there; it may hold tensors and plain values."""
    write_checkpoint(storable(checkpoint), filename)


def storable(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint without what has no plain form; the log says what was left out."""
    lost: list[str] = []

    def visit(value: Any, path: str) -> Any:
        if hasattr(value, "to_plain"):
            return value.to_plain()
        if isinstance(value, Mapping) and not isinstance(value, Counter):
            items = {key if type(key) in (str, int) else str(key): item for key, item in value.items()}
            return {key: visit(item, f"{path}.{key}" if path else str(key)) for key, item in items.items()}
        if type(value) in (list, tuple):
            return type(value)(visit(item, f"{path}[{index}]") for index, item in enumerate(value))
        plain = unpickle.as_plain(value)
        if plain is None and value is not None:
            lost.append(f"{path} ({type(value).__name__})")
        return plain

    result = visit(dict(checkpoint), "")
    if lost:
        print_log(f"not saved, because a checkpoint holds only tensors and plain values: {', '.join(lost)}", "current", logging.WARNING)
    return result  # type: ignore[no-any-return]


def weights_to_cpu(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    return OrderedDict((key, value.cpu()) for key, value in state_dict.items())


def get_state_dict(module: nn.Module, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
    """The state of the model, without a wrapper's prefix."""
    inner = module.module if hasattr(module, "module") else module
    return dict(inner.state_dict(prefix=prefix, keep_vars=keep_vars))  # type: ignore[union-attr]


def find_latest_checkpoint(path: str | Path) -> str | None:
    """The newest whole checkpoint of a work directory, None if there is none; the log says what was skipped.

    It is found by its name, so a directory may have been moved.
    """
    directory, names = Path(path), list[str]()
    note = directory / "last_checkpoint"
    if note.is_file():
        text = note.read_text(encoding="utf-8").strip()
        if osp.isfile(text) and not (directory / osp.basename(text)).is_file():
            return text
        names.append(osp.basename(text))
    store = CheckpointStore(directory)
    known = {name for entry in store.entries() for name in entry.names}
    names += [entry.name for entry in reversed(store.entries()) if not entry.name.startswith("best_")]
    for name in dict.fromkeys(names):
        try:
            if name in known:
                store.verify(name)
            if (directory / name).is_file():
                return str(directory / name)
        except CheckpointError as error:
            print_log(f"skipped {error}", "current", logging.WARNING)
    return None


class CheckpointLoader:
    """Loading by name; only local files are covered."""

    load_checkpoint: Callable[..., dict[str, Any]] = staticmethod(_load_checkpoint)
