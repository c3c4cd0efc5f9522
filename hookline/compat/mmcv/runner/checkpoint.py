"""Load and save checkpoints by path. Nothing in a file is executed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from hookline import checkpoint as store
from hookline.compat import unpickle
from hookline.compat.mmcv.parallel import unwrap
from hookline.compat.mmcv.runner.checkpointer import MMCV_VERSION
from hookline.compat.openmmlab import MODULE_PREFIX, match_weights, rename_weights


def load_checkpoint(
    model: torch.nn.Module,
    filename: str,
    map_location: Any = None,
    strict: bool = False,
    logger: logging.Logger | None = None,
    revise_keys: Iterable[tuple[str, str]] = MODULE_PREFIX,
) -> dict[str, Any]:
    """Load the weights of a file into a model, and return the content of the file.

    Args:
        model: The model, or a wrapper of it.
        filename: A local file.
        map_location: The device of the returned content.
        strict: Raise an error unless all weights fit.
        logger: Receives the warnings about weights that do not fit.
        revise_keys: Pairs of a pattern and its replacement in the names of the weights.
    """
    content = _load_checkpoint(filename, map_location, logger)
    weights = rename_weights(find_weights(content), revise_keys)
    load_state_dict(model, weights, strict, logger)
    return content


def load_state_dict(
    module: torch.nn.Module,
    state_dict: Mapping[str, Any],
    strict: bool = False,
    logger: logging.Logger | None = None,
) -> None:
    """Load the weights that fit. The others are an error if `strict`, otherwise a warning."""
    module = unwrap(module)
    fitting, problems = match_weights(module.state_dict(), state_dict)
    if problems and strict:
        raise RuntimeError("\n".join(problems))
    if problems:
        (logger or logging.getLogger("mmcv")).warning(
            "The model and loaded state dict do not match exactly\n%s", "\n".join(problems)
        )
    module.load_state_dict(fitting, strict=False)


def save_checkpoint(
    model: torch.nn.Module,
    filename: str,
    optimizer: Any = None,
    meta: Mapping[str, Any] | None = None,
    file_client_args: Mapping[str, Any] | None = None,
) -> None:
    """Write `meta`, `state_dict` and `optimizer` to a file, which is replaced in one step."""
    if meta is not None and not isinstance(meta, Mapping):
        raise TypeError(f"meta must be a dict or None, but got {type(meta)}")
    if file_client_args and file_client_args.get("backend") not in (None, "disk"):
        raise ValueError(
            "save_checkpoint: only files on a disk are covered, got "
            f"file_client_args={dict(file_client_args)}"
        )
    model = unwrap(model)
    about = {**(meta or {}), "mmcv_version": MMCV_VERSION, "time": time.asctime()}
    if getattr(model, "CLASSES", None) is not None:
        about["CLASSES"] = model.CLASSES
    content: dict[str, Any] = {"meta": about, "state_dict": weights_to_cpu(model.state_dict())}
    if isinstance(optimizer, torch.optim.Optimizer):
        content["optimizer"] = optimizer.state_dict()
    elif isinstance(optimizer, Mapping):
        content["optimizer"] = {name: each.state_dict() for name, each in optimizer.items()}
    path = Path(filename)
    files = store.CheckpointStore(path.parent)
    files.prepare()
    try:
        files.save(content, path.name, step=about.get("iter", 0), epoch=about.get("epoch", 0))
    finally:
        files.unlock()


def weights_to_cpu(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights on the CPU."""
    weights = {}
    for key, value in state_dict.items():
        weights[key] = value.cpu() if isinstance(value, torch.Tensor) else value
    return weights


def find_weights(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the weights of a checkpoint, which may consist of nothing else."""
    return content.get("state_dict", content)  # type: ignore[no-any-return]


def _load_checkpoint(
    filename: str, map_location: Any = None, logger: logging.Logger | None = None
) -> dict[str, Any]:
    """Return the content of a local file."""
    if "://" in str(filename):
        raise ValueError(f"{filename}: only local files are loaded; download it first")
    content = unpickle.load(filename)
    # A function of storages is ignored: loading into a model moves the weights anyway.
    if not isinstance(map_location, (str, torch.device)):
        return content
    return _move(content, map_location)  # type: ignore[no-any-return]


def _move(value: Any, device: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _move(item, device) for key, item in value.items()}
    if isinstance(value, list):
        return [_move(item, device) for item in value]
    return value
