"""Load and save checkpoints by path. Nothing in a file is executed."""

from __future__ import annotations

import logging
import os.path as osp
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
from hookline.compat.openmmlab import MODULE_PREFIX, match_weights, rename_weights


def _load_checkpoint(
    filename: str | Path, map_location: Any = None, logger: Any = None
) -> dict[str, Any]:
    """Return the content of a local checkpoint of MMEngine, MMCV or Hookline."""
    if "://" in str(filename):
        raise ValueError(f"{filename}: only local files are covered; download it first")
    checkpoint = unpickle.load(osp.expanduser(filename))
    if map_location in (None, "cpu", "default"):
        return checkpoint
    if callable(map_location):
        raise ValueError("map_location: a device is covered, a function is not")
    moved: dict[str, Any] = apply_to(
        checkpoint,
        lambda value: isinstance(value, torch.Tensor),
        lambda tensor: tensor.to(map_location),
    )
    return moved


def load_checkpoint(
    model: nn.Module,
    filename: str | Path,
    map_location: Any = None,
    strict: bool = False,
    logger: Any = None,
    revise_keys: Sequence[tuple[str, str]] = MODULE_PREFIX,
) -> dict[str, Any]:
    """Load the weights of a checkpoint into a model, and return the whole checkpoint."""
    checkpoint = _load_checkpoint(filename, map_location)
    return _load_checkpoint_to_model(model, checkpoint, strict, logger, revise_keys)


def _load_checkpoint_to_model(
    model: nn.Module,
    checkpoint: dict[str, Any],
    strict: bool = False,
    logger: Any = None,
    revise_keys: Sequence[tuple[str, str]] = MODULE_PREFIX,
) -> dict[str, Any]:
    weights = rename_weights(checkpoint.get("state_dict", checkpoint), revise_keys)
    load_state_dict(model, weights, strict, logger)
    return checkpoint


def load_state_dict(
    module: nn.Module, state_dict: Mapping[str, Any], strict: bool = False, logger: Any = None
) -> None:
    """Load the weights that fit. The others are an error if `strict`, otherwise a warning."""
    fitting, problems = match_weights(module.state_dict(), state_dict)
    module.load_state_dict(fitting, strict=False)
    if not problems:
        return
    text = "\n".join(["The model and loaded state dict do not match exactly", *problems])
    if strict:
        raise RuntimeError(text)
    print_log(text, logger or "current", logging.WARNING)


def load_weights(filename: str | Path) -> dict[str, Any]:
    """Return the weights in a checkpoint file."""
    checkpoint = _load_checkpoint(filename)
    weights: dict[str, Any] = checkpoint.get("state_dict", checkpoint)
    return weights


def load_checkpoint_with_prefix(prefix: str, filename: str | Path) -> dict[str, Any]:
    """Return the weights whose names begin with a prefix, without the prefix."""
    prefix = prefix if prefix.endswith(".") else f"{prefix}."
    part = {}
    for key, value in load_weights(filename).items():
        if key.startswith(prefix):
            part[key.removeprefix(prefix)] = value
    if not part:
        raise AssertionError(f"{prefix} is not in the pretrained model")
    return part


def save_checkpoint(
    checkpoint: dict[str, Any],
    filename: str | Path,
    file_client_args: Any = None,
    backend_args: Any = None,
) -> None:
    """Write a checkpoint of tensors and plain values; the file is replaced in one step."""
    write_checkpoint(storable(checkpoint), filename)


def storable(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without values that have no plain form; log the removed ones."""
    lost: list[str] = []
    result: dict[str, Any] = _plain(dict(checkpoint), "", lost)
    if lost:
        print_log(
            "not saved, because a checkpoint holds only tensors and plain values: "
            f"{', '.join(lost)}",
            "current",
            logging.WARNING,
        )
    return result


def _plain(value: Any, path: str, lost: list[str]) -> Any:
    """Return a value in its plain form; add the paths of parts without one to `lost`."""
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if isinstance(value, Mapping) and not isinstance(value, Counter):
        items = {}
        for given_key, item in value.items():
            key = given_key if type(given_key) in (str, int) else str(given_key)
            items[key] = _plain(item, f"{path}.{key}" if path else str(key), lost)
        return items
    if type(value) in (list, tuple):
        parts = [_plain(item, f"{path}[{index}]", lost) for index, item in enumerate(value)]
        return type(value)(parts)
    plain = unpickle.as_plain(value)
    if plain is None and value is not None:
        lost.append(f"{path} ({type(value).__name__})")
    return plain


def weights_to_cpu(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights on the CPU."""
    return OrderedDict((key, value.cpu()) for key, value in state_dict.items())


def get_state_dict(
    module: nn.Module, destination: Any = None, prefix: str = "", keep_vars: bool = False
) -> dict[str, Any]:
    """Return the state of the model, without the prefix of a wrapper."""
    inner: Any = getattr(module, "module", module)
    return dict(inner.state_dict(prefix=prefix, keep_vars=keep_vars))


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
        try:
            if name in known:
                store.verify(name)
            if (directory / name).is_file():
                return str(directory / name)
        except CheckpointError as error:
            print_log(f"skipped {error}", "current", logging.WARNING)
    return None


class CheckpointLoader:
    """The loader of checkpoints; only local files are covered."""

    load_checkpoint: Callable[..., dict[str, Any]] = staticmethod(_load_checkpoint)
