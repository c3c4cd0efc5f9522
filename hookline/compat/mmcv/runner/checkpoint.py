"""Load and save checkpoints. Nothing in a file is executed."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from hookline import checkpoint as store
from hookline.compat.mmcv import MMCV_VERSION
from hookline.compat.mmcv.runner.checkpoint_loader import (
    DEFAULT_CACHE_DIR,
    ENV_MMCV_HOME,
    ENV_XDG_CACHE_HOME,
    CheckpointLoader,
    get_deprecated_model_names,
    get_external_models,
    get_mmcls_models,
    load_from_ceph,
    load_from_http,
    load_from_local,
    load_from_mmcls,
    load_from_openmmlab,
    load_from_pavi,
    load_from_torchvision,
)
from hookline.compat.mmcv.runner.checkpoint_loader import _get_mmcv_home as _get_mmcv_home
from hookline.compat.mmcv.runner.checkpointer import to_bytes
from hookline.compat.mmcv.runner.dist_utils import master_only
from hookline.compat.mmcv.runner.file_client import find_remote
from hookline.compat.mmcv.runner.model_wrapper import module_versions, unwrap
from hookline.compat.weights import (
    MODULE_PREFIX,
    load_fitting,
    rename_weights,
    weights_to_cpu,
)

__all__ = [
    "DEFAULT_CACHE_DIR",
    "ENV_MMCV_HOME",
    "ENV_XDG_CACHE_HOME",
    "CheckpointLoader",
    "get_deprecated_model_names",
    "get_external_models",
    "get_mmcls_models",
    "get_state_dict",
    "load_checkpoint",
    "load_from_ceph",
    "load_from_http",
    "load_from_local",
    "load_from_mmcls",
    "load_from_openmmlab",
    "load_from_pavi",
    "load_from_torchvision",
    "load_state_dict",
    "save_checkpoint",
    "weights_to_cpu",
]


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
        filename: A local file, a URL or a name with a prefix such as `open-mmlab://`.
        map_location: The device of the returned content.
        strict: Raise an error unless all weights fit.
        logger: Receives the warnings about weights that do not fit.
        revise_keys: Pairs of a pattern and its replacement in the names of the weights.
    """
    content = _load_checkpoint(filename, map_location, logger)
    if not isinstance(content, dict):
        raise RuntimeError(f"No state_dict found in checkpoint file {filename}")
    load_state_dict(model, rename_weights(find_weights(content), revise_keys), strict, logger)
    return content


def load_state_dict(
    module: torch.nn.Module,
    state_dict: Mapping[str, Any],
    strict: bool = False,
    logger: logging.Logger | None = None,
) -> None:
    """Load the weights that fit. The others are an error if `strict`, otherwise a warning."""
    warn = master_only(print if logger is None else logger.warning)
    load_fitting(module, state_dict, unwrap, strict, warn)


def save_checkpoint(
    model: torch.nn.Module,
    filename: str,
    optimizer: Any = None,
    meta: Mapping[str, Any] | None = None,
    file_client_args: Mapping[str, Any] | None = None,
) -> None:
    """Write `meta`, `state_dict` and `optimizer` to a file, which is replaced in one step."""
    if meta is not None and not isinstance(meta, dict):
        raise TypeError(f"meta must be a dict or None, but got {type(meta)}")
    model = unwrap(model)
    about = {**(meta or {}), "mmcv_version": MMCV_VERSION, "time": time.asctime()}
    about["module_versions"] = module_versions(model)
    if getattr(model, "CLASSES", None) is not None:
        about["CLASSES"] = model.CLASSES
    content: dict[str, Any] = {"meta": about, "state_dict": weights_to_cpu(get_state_dict(model))}
    if isinstance(optimizer, torch.optim.Optimizer):
        content["optimizer"] = optimizer.state_dict()
    elif isinstance(optimizer, Mapping):
        content["optimizer"] = {name: each.state_dict() for name, each in optimizer.items()}
    client = find_remote(filename, file_client_args)
    if client is not None:
        client.put(to_bytes(content), filename)
        return
    path = Path(filename).expanduser()
    files = store.CheckpointStore(path.parent, hidden=True)
    files.prepare()
    try:
        files.save(content, path.name, step=about.get("iter", 0), epoch=about.get("epoch", 0))
    finally:
        files.unlock()


def get_state_dict(
    module: Any,
    destination: Any = None,
    prefix: str = "",
    keep_vars: bool = False,
) -> OrderedDict[str, Any]:
    """Return the parameters and all buffers of a model, with wrappers inside it left out."""
    module = unwrap(module)
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    version = {"version": module._version}
    destination._metadata[prefix[:-1]] = version
    for name, tensor in (*module._parameters.items(), *module._buffers.items()):
        if tensor is not None:
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
    for name, child in module._modules.items():
        if child is not None:
            get_state_dict(child, destination, f"{prefix}{name}.", keep_vars)
    for hook in module._state_dict_hooks.values():
        destination = hook(module, destination, prefix, version) or destination
    return destination  # type: ignore[no-any-return]


def find_weights(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the weights of a checkpoint, which may consist of nothing else.

    They have the versions of their modules, as torch keeps them or as this package saves them.
    """
    weights: Mapping[str, Any] = content.get("state_dict", content)
    saved = content.get("meta", {}).get("module_versions")
    if hasattr(weights, "_metadata") or saved is None:
        return weights
    versioned: Any = OrderedDict(weights)
    versioned._metadata = {name: {"version": version} for name, version in saved.items()}
    return versioned  # type: ignore[no-any-return]


def _load_checkpoint(
    filename: str, map_location: Any = None, logger: logging.Logger | None = None
) -> dict[str, Any]:
    """Return the content of a checkpoint."""
    return CheckpointLoader.load_checkpoint(filename, map_location, logger)  # type: ignore[no-any-return]


def _load_checkpoint_with_prefix(
    prefix: str, filename: str, map_location: Any = None
) -> dict[str, Any]:
    """Return the weights whose names begin with a prefix, without it."""
    prefix = f"{prefix.rstrip('.')}."
    weights = {}
    for key, value in find_weights(_load_checkpoint(filename, map_location)).items():
        if key.startswith(prefix):
            weights[key.removeprefix(prefix)] = value
    assert weights, f"{prefix} is not in the pretrained model"
    return weights
