"""What a checkpoint may hold, and how it becomes bytes and back."""

from __future__ import annotations

import collections
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import torch
from torch import Tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import HashingWriter
from hookline.errors import ConfigError, Path, Problem

log = logging.getLogger(__name__)

WEIGHTS = ("state_dict", "ema_state_dict")
ATOMS = frozenset({type(None), bool, int, float, str, bytes})
TENSORS = (Tensor, torch.nn.Parameter)
MAPPINGS = (dict, collections.OrderedDict)
HINTS = {
    "set": "use a sorted list",
    "frozenset": "use a sorted list",
    "ndarray": "use torch.from_numpy(…) or .tolist()",
    "device": "use str(…)",
    "dtype": "use str(…)",
}
FORCE = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def check_plain(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint as tensors and plain values only; ConfigError with the path of each thing that is neither.

    Containers are new, tensors share memory with the originals.
    """
    problems: list[Problem] = []
    plain = _plain(checkpoint, (), (), problems)
    if not problems and type(plain) is not dict:
        problems.append(Problem(f"a checkpoint is a dict, got a {type(checkpoint).__name__}"))
    if problems:
        raise ConfigError(problems)
    return dict(plain)


def serialize(checkpoint: Mapping[str, Any], stream: HashingWriter) -> None:
    """Write what `check_plain` returned, in torch's own format."""
    try:
        torch.save(checkpoint, stream)  # type: ignore[arg-type]
    except RuntimeError:
        if stream.error is not None:
            raise stream.error from None
        raise


def deserialize(stream: BinaryIO, name: str) -> dict[str, Any]:
    """The checkpoint in an open file, on the CPU; nothing in it is executed. CheckpointError if it is not one."""
    if os.environ.get(FORCE):
        log.warning("%s is set and ignored: checkpoints are never unpickled freely", FORCE)
    try:
        checkpoint = torch.load(stream, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(f"{name}: {_reason(error)}") from error
    if not isinstance(checkpoint, dict):
        raise CheckpointError(f"{name}: holds a {type(checkpoint).__name__}, not a checkpoint")
    return checkpoint


def is_finite(weights: Any) -> bool:
    """Whether all tensors in a nested structure are free of NaN and infinity.

    An attention mask, a matrix of zeros and -inf and nothing else, is a constant and passes.
    """
    floats = [_numbers(tensor) for _, tensor in tensors(weights) if tensor.is_floating_point() or tensor.is_complex()]
    floats = [tensor for tensor in floats if tensor.numel()]
    extremes = [torch.stack(torch.aminmax(tensor)).double().cpu() for tensor in floats]  # NaN wins in both
    if not extremes or bool(torch.stack(extremes).isfinite().all()):
        return True
    return all(bool(extreme.isfinite().all()) or _is_mask(tensor) for extreme, tensor in zip(extremes, floats, strict=True))


def needed_bytes(checkpoint: Mapping[str, Any]) -> int:
    """About how large the file will be; shared storages count once."""
    storages, count = {}, 0
    for _, tensor in tensors(checkpoint):
        count += 1
        if tensor.layout is torch.strided:
            storages[tensor.device, tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        else:
            storages[tensor.device, -count] = _numbers(tensor).nbytes
    return sum(storages.values()) + 512 * count + (1 << 16)


def tensors(value: Any, path: Path = ()) -> Iterator[tuple[Path, Tensor]]:
    """Every tensor in a nested structure with the path that leads to it."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensors(item, (*path, index))


def _plain(value: Any, path: Path, outer: tuple[int, ...], problems: list[Problem]) -> Any:
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind in TENSORS:
        if value.is_meta:
            problems.append(Problem("a tensor without data (on the meta device) cannot be stored", path))
        return value.detach().resolve_conj().resolve_neg()
    if id(value) in outer:
        problems.append(Problem("contains itself", path))
        return None
    outer = (*outer, id(value))
    if kind in MAPPINGS or kind is collections.Counter:  # MultiStepLR keeps its milestones in a Counter
        wrong = [key for key in value if type(key) not in (str, int)]
        problems += [Problem(f"the key {key!r} cannot be stored: keys are text or whole numbers", path) for key in wrong]
        items = {key: _plain(item, (*path, key), outer, problems) for key, item in value.items() if key not in wrong}
        return items if kind in MAPPINGS else collections.Counter(items)
    if kind in (list, tuple, torch.Size):
        if ATOMS.issuperset(map(type, value)):  # a long history must not cost a call per number
            return list(value) if kind is list else tuple(value)
        sequence = [_plain(item, (*path, index), outer, problems) for index, item in enumerate(value)]
        return sequence if kind is list else tuple(sequence)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.bool_, numpy.number, numpy.str_)) and type(value.item()) in ATOMS:
        return value.item()
    hint = HINTS.get(kind.__name__, "use tensors, numbers, text, lists and dicts")
    problems.append(Problem(f"a {kind.__name__} cannot be stored in a checkpoint; {hint}", path))
    return None


def _numbers(tensor: Tensor) -> Tensor:
    """The numbers of a tensor in a form that every reduction knows; flat unless it is an ordinary one."""
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce().values()
    elif tensor.layout is not torch.strided:
        tensor = tensor.values()
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj()).flatten()
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def _is_mask(tensor: Tensor) -> bool:
    zero = tensor == 0
    return tensor.dim() > 1 and bool(zero.any()) and bool((zero | (tensor == -torch.inf)).all())


def _reason(error: Exception) -> str:
    """torch's message is a page long and advises to switch the protection off."""
    text = str(error)
    code = re.search(r"GLOBAL ([\w.]+)", text)
    if "Weights only load failed" in text or "weights_only" in text:
        what = f"it refers to {code[1]}" if code else "it is not one of torch's plain formats"
        return f"refused: {what}, and only tensors and plain values are ever loaded"
    return f"cannot be read: {text.splitlines()[0][:160] if text else 'the file is empty'}"
