"""Write the weights of a checkpoint as a folder that transformers or peft loads."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline.checkpoint.files import FileSystem, make_directories
from hookline.checkpoint.weights import load_weights
from hookline.errors import Suggestion
from hookline.export.card import write_pretrained_card
from hookline.export.errors import ExportError

PRETRAINED_FORMATS = ("hf", "peft")
SIZE = re.compile(r"\d+(\.\d+)?([KMGT]i?)?B", re.IGNORECASE)


def write_pretrained(
    model: nn.Module,
    checkpoint: Mapping[str, Any],
    name: str,
    directory: Path,
    kind: str,
    shard_size: str = "5GB",
    tokenizer: Any = None,
) -> None:
    """Write a folder with weights, config, tokenizer and a model card.

    The averaged weights are written if there are any. The folder appears when it is complete.

    Args:
        model: The model on the CPU, which gets the weights.
        checkpoint: The checkpoint, also one of the trained part.
        name: Its name, for the model card.
        directory: The folder, which must not exist yet.
        kind: `hf` for `from_pretrained` of transformers, into which adapters are merged, or `peft`
            for `PeftModel.from_pretrained`, with the adapter alone.
        shard_size: The largest file of weights, such as `5GB`.
        tokenizer: A tokenizer of transformers that belongs to the model.

    Raises:
        ExportError: If the model or the folder is not of the right kind.
    """
    is_adapted = hasattr(model, "peft_config") and hasattr(model, "merge_and_unload")
    _check(model, is_adapted, directory, kind, shard_size)
    weights = checkpoint.get("ema_state_dict") or checkpoint["state_dict"]
    load_weights(model, {**checkpoint, "state_dict": weights})
    source: Any = model
    inner = source.get_base_model() if is_adapted else source
    loader = type(inner).__name__
    base = str(getattr(inner, "name_or_path", ""))
    if kind == "hf" and is_adapted:
        source = source.merge_and_unload()
    make_directories(FileSystem(), directory.parent)
    partial = directory.with_name(f".partial-{uuid.uuid4().hex}")
    try:
        source.save_pretrained(partial, max_shard_size=shard_size)
        if kind == "hf":
            _verify(source, type(source).from_pretrained(partial))
        if tokenizer is not None:
            tokenizer.save_pretrained(partial)
        write_pretrained_card(partial, kind, loader, base, checkpoint.get("meta", {}), name)
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _verify(model: nn.Module, loaded: nn.Module) -> None:
    """Raise ExportError if a folder gives another model, as tied weights that differ do."""
    found = loaded.state_dict()
    for name, value in model.state_dict().items():
        if name not in found or not torch.equal(found[name], value.cpu()):
            layer = name.rpartition(".")[0]
            advice = Suggestion(advice="if it is tied to other weights, train both or neither")
            message = f"{name} would be loaded with other values"
            raise ExportError(message, layer=layer, suggestion=advice)


def _check(model: nn.Module, is_adapted: bool, directory: Path, kind: str, shard_size: str) -> None:
    name = type(model).__name__
    if kind == "peft" and not is_adapted:
        advice = Suggestion(advice="use --format hf")
        raise ExportError(f"{name} has no adapter of peft", suggestion=advice)
    if not callable(getattr(model, "save_pretrained", None)):
        advice = Suggestion(advice="use --format safetensors")
        raise ExportError(f"{name} is not a model of transformers", suggestion=advice)
    if SIZE.fullmatch(shard_size) is None:
        message = f"the size of a shard must be a number with a unit, such as 5GB: {shard_size!r}"
        raise ExportError(message)
    if directory.exists():
        raise ExportError(f"{directory} exists already", suggestion=Suggestion(advice="use -o"))
