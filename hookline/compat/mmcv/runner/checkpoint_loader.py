"""Where checkpoints are loaded from: files, URLs, and the model zoos of the installed MMCV."""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlparse

import torch

from hookline.compat import overlay, unpickle
from hookline.compat.mmcv.errors import ADVICE
from hookline.compat.mmcv.runner.dist_utils import get_dist_info
from hookline.compat.mmcv.runner.file_client import find_remote
from hookline.compat.mmcv.utils.logging import print_log
from hookline.errors import suggest

Loader = Callable[..., Any]
ENV_MMCV_HOME = "MMCV_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"


class CheckpointLoader:
    """Functions that load a checkpoint, each for names that begin with its prefix."""

    _schemes: ClassVar[dict[str, Loader]] = {}

    @classmethod
    def register_scheme(
        cls, prefixes: str | Iterable[str], loader: Loader | None = None, force: bool = False
    ) -> Any:
        """Register a loader for prefixes, which are regular expressions; also a decorator."""
        keys = [prefixes] if isinstance(prefixes, str) else list(prefixes)

        def register(function: Loader) -> Loader:
            for key in keys:
                if key in cls._schemes and not force:
                    raise KeyError(
                        f"{key} is already registered as a loader backend, "
                        'add "force=True" if you want to override it'
                    )
                cls._schemes[key] = function
            return function

        return register if loader is None else register(loader)

    @classmethod
    def _get_checkpoint_loader(cls, path: str) -> Loader:
        for prefix in sorted(cls._schemes, reverse=True):  # the longest one that matches
            if re.match(prefix, path):
                return cls._schemes[prefix]
        raise ValueError(f"no loader is registered for {path}")

    @classmethod
    def load_checkpoint(
        cls, filename: str, map_location: Any = None, logger: logging.Logger | None = None
    ) -> Any:
        """Return the content of a checkpoint."""
        loader = cls._get_checkpoint_loader(str(filename))
        source = loader.__name__.removeprefix("load_from_")
        print_log(f"load checkpoint from {source} path: {filename}", logger)
        return loader(filename, map_location)


def load_from_local(filename: str, map_location: Any = None) -> Any:
    """Load a local file."""
    path = os.path.expanduser(filename)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path} can not be found.")
    content = unpickle.load(path)
    # A function of storages is ignored: loading into a model moves the weights anyway.
    if isinstance(map_location, (str, torch.device)):
        return _move(content, map_location)
    return content


def load_from_http(filename: str, map_location: Any = None, model_dir: str | None = None) -> Any:
    """Download a file to the cache of `torch.hub`, on rank 0, and load it."""
    directory = Path(model_dir or Path(torch.hub.get_dir()) / "checkpoints")
    path = directory / Path(urlparse(filename).path).name
    rank, world_size = get_dist_info()
    if rank == 0 and not path.is_file():
        directory.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(filename, str(path))
    if world_size > 1:
        torch.distributed.barrier()
    return load_from_local(str(path), map_location)


def load_from_pavi(filename: str, map_location: Any = None) -> Any:
    """Load a file of Pavi's model cloud."""
    assert filename.startswith("pavi://"), f"Expected filename startswith `pavi://`, got {filename}"
    modelcloud = importlib.import_module("pavi").modelcloud
    model = modelcloud.get(filename.removeprefix("pavi://"))
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, model.name)
        model.download(file)
        return load_from_local(file, map_location)


def load_from_ceph(filename: str, map_location: Any = None, backend: str = "petrel") -> Any:
    """Load a file from a storage of the installed MMCV."""
    if backend not in ("ceph", "petrel"):
        raise ValueError(f"Load from Backend {backend} is not supported.")
    client = find_remote(filename, {"backend": backend})
    with tempfile.NamedTemporaryFile() as file:
        file.write(client.get(filename))
        file.flush()
        return load_from_local(file.name, map_location)


def load_from_torchvision(filename: str, map_location: Any = None) -> Any:
    """Load a model of torchvision, by its name in torchvision 0.12."""
    name = filename.split("://", 1)[1].lower().replace("_weights", "")
    return load_from_http(_entry(_zoo("torchvision_0.12"), name), map_location=map_location)


def load_from_openmmlab(filename: str, map_location: Any = None) -> Any:
    """Load a model of OpenMMLab's zoo, or of `open_mmlab.json` in `MMCV_HOME`."""
    name = filename.split("://", 1)[1]
    deprecated = get_deprecated_model_names()
    if name in deprecated:
        scheme = filename.split("://", 1)[0]
        message = f"{filename} is deprecated in favor of {scheme}://{deprecated[name]}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        name = deprecated[name]
    url = _entry(get_external_models(), name)
    if url.startswith(("http://", "https://")):
        return load_from_http(url, map_location=map_location)
    return load_from_local(os.path.join(_get_mmcv_home(), url), map_location)


def load_from_mmcls(filename: str, map_location: Any = None) -> Any:
    """Load the backbone of a model of MMClassification."""
    url = _entry(get_mmcls_models(), filename.removeprefix("mmcls://"))
    content = load_from_http(url, map_location=map_location)
    weights = content.get("state_dict", content)
    prefix = "backbone."
    own = {key.removeprefix(prefix): weights[key] for key in weights if key.startswith(prefix)}
    return {"state_dict": own}


def get_external_models() -> dict[str, str]:
    """Return the names and URLs of OpenMMLab's zoo, and of `open_mmlab.json` in `MMCV_HOME`."""
    entries = _zoo("open_mmlab")
    own = Path(_get_mmcv_home()) / "open_mmlab.json"
    if own.is_file():
        entries.update(json.loads(own.read_text()))
    return entries


def get_mmcls_models() -> dict[str, str]:
    return _zoo("mmcls")


def get_deprecated_model_names() -> dict[str, str]:
    return _zoo("deprecated")


def _entry(zoo: dict[str, str], name: str) -> str:
    if name not in zoo:
        raise KeyError(f"{name} is not in MMCV's model zoo{suggest(name, zoo)}")
    return zoo[name]


def _zoo(name: str) -> dict[str, str]:
    """Return the names and URLs of a model zoo, which the installed MMCV has."""
    if overlay.find("mmcv") is None:
        raise ValueError(f"MMCV has the lists of its model zoos; {ADVICE}")
    folder = Path(importlib.import_module("mmcv").__path__[0]) / "model_zoo"
    entries: dict[str, str] = json.loads((folder / f"{name}.json").read_text())
    return entries


def _get_mmcv_home() -> str:
    cache = os.environ.get(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    home = os.path.expanduser(os.environ.get(ENV_MMCV_HOME, os.path.join(cache, "mmcv")))
    os.makedirs(home, exist_ok=True)
    return home


def _move(value: Any, device: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        moved = type(value)((key, _move(item, device)) for key, item in value.items())
        if isinstance(value, OrderedDict):
            vars(moved).update(vars(value))  # the versions of modules
        return moved
    if isinstance(value, list):
        return [_move(item, device) for item in value]
    return value


CheckpointLoader.register_scheme("", load_from_local)
CheckpointLoader.register_scheme(("http://", "https://"), load_from_http)
CheckpointLoader.register_scheme("pavi://", load_from_pavi)
CheckpointLoader.register_scheme(r"(\S+\:)?s3://", load_from_ceph)
CheckpointLoader.register_scheme(("modelzoo://", "torchvision://"), load_from_torchvision)
CheckpointLoader.register_scheme(("open-mmlab://", "openmmlab://"), load_from_openmmlab)
CheckpointLoader.register_scheme("mmcls://", load_from_mmcls)
