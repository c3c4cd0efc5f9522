"""Loading and saving checkpoints by path. Nothing in a file is executed."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from hookline import checkpoint as store
from hookline.compat import unpickle
from hookline.compat.mmcv.parallel import is_module_wrapper
from hookline.compat.mmcv.runner.saving import MMCV_VERSION

MODULE_PREFIX = ((r"^module\.", ""),)


def load_checkpoint(
    model: torch.nn.Module,
    filename: str,
    map_location: Any = None,
    strict: bool = False,
    logger: logging.Logger | None = None,
    revise_keys: Iterable[tuple[str, str]] = MODULE_PREFIX,
) -> dict[str, Any]:
    """Load the weights of a file into a model, after changing their names by `revise_keys`; the content of the file."""
    content = _load_checkpoint(filename, map_location, logger)
    load_state_dict(model, revised(weights_of(content), revise_keys), strict, logger)
    return content


def load_state_dict(
    module: torch.nn.Module, state_dict: Mapping[str, Any], strict: bool = False, logger: logging.Logger | None = None
) -> None:
    """Load what fits; what does not is an error if `strict`, else a warning."""
    module = module.module if is_module_wrapper(module) else module  # type: ignore[assignment]
    own = module.state_dict()
    unexpected = [key for key in state_dict if key not in own]
    missing = [key for key in own if key not in state_dict and "num_batches_tracked" not in key]
    misfits = [key for key, value in own.items() if key in state_dict and value.shape != state_dict[key].shape]
    problems = [
        *([f"unexpected key in source state_dict: {', '.join(unexpected)}"] if unexpected else []),
        *([f"missing keys in source state_dict: {', '.join(missing)}"] if missing else []),
        *(f"size mismatch for {key}: {tuple(state_dict[key].shape)} in the file, {tuple(own[key].shape)} here" for key in misfits),
    ]
    if problems and strict:
        raise RuntimeError("\n".join(problems))
    if problems:
        (logger or logging.getLogger("mmcv")).warning("The model and loaded state dict do not match exactly\n%s", "\n".join(problems))
    module.load_state_dict({key: value for key, value in state_dict.items() if key in own and key not in misfits}, strict=False)


def save_checkpoint(
    model: torch.nn.Module,
    filename: str,
    optimizer: Any = None,
    meta: Mapping[str, Any] | None = None,
    file_client_args: Mapping[str, Any] | None = None,
) -> None:
    """Write `meta`, `state_dict` and `optimizer` to a file: as a whole or not at all."""
    if meta is not None and not isinstance(meta, Mapping):
        raise TypeError(f"meta must be a dict or None, but got {type(meta)}")
    if file_client_args and file_client_args.get("backend") not in (None, "disk"):
        raise ValueError(f"save_checkpoint: only files on a disk are covered, got file_client_args={dict(file_client_args)}")
    model = model.module if is_module_wrapper(model) else model  # type: ignore[assignment]
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
    return {key: value.cpu() if isinstance(value, torch.Tensor) else value for key, value in state_dict.items()}


def weights_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The weights in a checkpoint, which may be nothing but them."""
    return content.get("state_dict", content)  # type: ignore[no-any-return]


def revised(weights: Mapping[str, Any], revise_keys: Iterable[tuple[str, str]] = MODULE_PREFIX) -> dict[str, Any]:
    """The weights by names in which each pattern is replaced."""
    result = dict(weights)
    for pattern, replacement in revise_keys:
        result = {re.sub(pattern, replacement, key): value for key, value in result.items()}
    return result


def _load_checkpoint(filename: str, map_location: Any = None, logger: logging.Logger | None = None) -> dict[str, Any]:
    """The content of a local file."""
    if "://" in str(filename):
        raise ValueError(f"{filename}: only local files are loaded; download it first")
    content = unpickle.load(filename)
    if not isinstance(map_location, (str, torch.device)):  # a function of storages: loading into a model moves the weights anyway
        return content
    return _placed(content, map_location)  # type: ignore[no-any-return]


def _placed(value: Any, device: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: _placed(item, device) for key, item in value.items()}
    return [_placed(item, device) for item in value] if isinstance(value, list) else value
