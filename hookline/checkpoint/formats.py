"""The content of checkpoints: tensors and plain values, and their form on disk."""

from __future__ import annotations

import collections
import logging
import os
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint

from hookline.checkpoint.errors import CheckpointError, UnsafeCheckpoint
from hookline.checkpoint.files import HashingWriter
from hookline.checkpoint.pickles import load_plain
from hookline.checkpoint.structure import check_depth
from hookline.errors import NO_VALUE, ConfigError, KeyPath, Problem, Suggestion, dotted

log = logging.getLogger(__name__)

WEIGHTS = ("state_dict", "ema_state_dict")
ATOMS = frozenset({type(None), bool, int, float, str, bytes})
TENSORS = (Tensor, torch.nn.Parameter)
MAPPINGS = (dict, collections.OrderedDict)
SEQUENCES = (list, tuple, torch.Size)
ADVICE = {
    "set": "use a sorted list",
    "frozenset": "use a sorted list",
    "ndarray": "use torch.from_numpy(…) or .tolist()",
    "device": "use str(…)",
    "dtype": "use str(…)",
}
DEFAULT_ADVICE = "use tensors, numbers, text, lists and dicts"
# The variable with which users of torch switch off its protection against pickled code.
FORCE_UNSAFE_LOAD = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
MAX_REASON = 160  # characters of an error of torch
TENSOR_HEADER_BYTES = 512
FILE_HEADER_BYTES = 1 << 16
MAX_EXPANDED_BYTES = 1 << 30  # of tensors that are larger than their storage


def check_plain(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint that consists of tensors and plain values only.

    Containers are new. Tensors share memory with the originals.

    Raises:
        ConfigError: If the checkpoint holds anything else, with the path of each such value.
    """
    checker = _PlainChecker()
    plain = checker.convert(checkpoint, (), ())
    if not checker.problems and type(plain) is not dict:
        found = type(checkpoint).__name__
        checker.problems.append(Problem(f"a checkpoint must be a dict, not a {found}"))
    if checker.problems:
        raise ConfigError(checker.problems)
    return dict(plain)


def serialize(checkpoint: Mapping[str, Any], stream: HashingWriter) -> None:
    """Write the result of `check_plain` in torch's format."""
    try:
        torch.save(checkpoint, stream)  # type: ignore[arg-type]
    except RuntimeError:
        if stream.error is not None:
            raise stream.error from None
        raise


def deserialize(stream: BinaryIO, name: str) -> dict[str, Any]:
    """Load a checkpoint from an open file to the CPU. Nothing in the file is executed.

    Args:
        stream: The file.
        name: Its name, for errors.

    Raises:
        UnsafeCheckpoint: If the file refers to code.
        CheckpointError: If it is not a checkpoint.
    """
    if os.environ.get(FORCE_UNSAFE_LOAD):
        log.warning("%s is ignored: checkpoints are never unpickled freely", FORCE_UNSAFE_LOAD)
    try:
        checkpoint = load_plain(stream)
    except pickle.UnpicklingError as error:
        raise _unsafe_content_error(stream, name) from error
    except Exception as error:
        text = str(error)
        reason = text.splitlines()[0][:MAX_REASON] if text else "the file is empty"
        raise CheckpointError(f"cannot be read: {reason}", file=name) from error
    if not isinstance(checkpoint, dict):
        found = type(checkpoint).__name__
        raise CheckpointError(f"holds a {found}, not a checkpoint", file=name)
    check_depth(checkpoint, name)
    _check_tensors(checkpoint, name)
    return checkpoint


def _check_tensors(checkpoint: Mapping[str, Any], name: str) -> None:
    """Raise CheckpointError for tensors without data, or if they repeat a few numbers endlessly."""
    expanded = 0
    for path, tensor in iterate_tensors(checkpoint):
        if tensor.is_meta:
            raise CheckpointError(f"the tensor {dotted(path)} has no data", file=name)
        is_strided = tensor.layout is torch.strided
        if is_strided and tensor.nbytes > tensor.untyped_storage().nbytes():
            expanded += tensor.nbytes
    if expanded > MAX_EXPANDED_BYTES:
        message = f"expanded tensors of {expanded:,} bytes; at most {MAX_EXPANDED_BYTES:,} allowed"
        raise CheckpointError(message, file=name)


def is_finite(weights: Any) -> bool:
    """Return whether all tensors in a nested structure are free of NaN and infinity.

    An attention mask is a constant and passes: a matrix of nothing but zeros and -inf.
    """
    numbers = []
    for _, tensor in iterate_tensors(weights):
        if tensor.is_floating_point() or tensor.is_complex():
            values = _numbers(tensor)
            if values.numel():
                numbers.append(values)
    if not numbers:
        return True
    extremes = []  # NaN wins in both the smallest and the largest value
    for values in numbers:
        extremes.append(torch.stack(torch.aminmax(values)).double().cpu())
    finite = torch.stack(extremes).isfinite().all(dim=1).tolist()
    suspects = [values for values, good in zip(numbers, finite, strict=True) if not good]
    return all(_is_mask(values) for values in suspects)


def needed_bytes(checkpoint: Mapping[str, Any]) -> int:
    """Estimate the size of the file. Shared storages count once."""
    storages: dict[tuple[torch.device, int], int] = {}
    count = 0
    for _, tensor in iterate_tensors(checkpoint):
        count += 1
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            storages[tensor.device, storage.data_ptr()] = storage.nbytes()
        else:
            storages[tensor.device, -count] = _numbers(tensor).nbytes
    return sum(storages.values()) + TENSOR_HEADER_BYTES * count + FILE_HEADER_BYTES


def iterate_tensors(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Tensor]]:
    """Yield every tensor in a nested structure with the path that leads to it."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from iterate_tensors(item, (*path, key))
    elif isinstance(value, (list, tuple)) and not holds_only_atoms(value):
        for index, item in enumerate(value):
            yield from iterate_tensors(item, (*path, index))


def holds_only_atoms(values: Sequence[Any]) -> bool:
    """Return whether a sequence holds no containers or tensors, fast also for a long history."""
    return ATOMS.issuperset(map(type, values))


class _PlainChecker:
    """A converter of nested values to plain ones, with the problems of those that are not."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def convert(self, value: Any, path: KeyPath, parents: tuple[int, ...]) -> Any:
        """Return a plain value; `parents` are the ids of the containers around it."""
        kind = type(value)
        if kind in ATOMS:
            return value
        if kind in TENSORS:
            return self._convert_tensor(value, path)
        if id(value) in parents:
            self._reject("contains itself", path)
            return None
        parents = (*parents, id(value))
        if kind in MAPPINGS:
            return self._convert_items(value, path, parents)
        if kind is collections.Counter:  # MultiStepLR keeps its milestones in one
            return collections.Counter(self._convert_items(value, path, parents))
        if kind in SEQUENCES:
            return self._convert_sequence(value, path, parents)
        scalar = _numpy_scalar(value)
        if scalar is None:
            advice = ADVICE.get(kind.__name__, DEFAULT_ADVICE)
            self._reject(f"a {kind.__name__} cannot be stored in a checkpoint", path, advice)
        return scalar

    def _convert_tensor(self, tensor: Tensor, path: KeyPath) -> Tensor:
        if tensor.is_meta:
            self._reject("a tensor without data (on the meta device) cannot be stored", path)
        return tensor.detach().resolve_conj().resolve_neg()

    def _convert_items(
        self, value: Mapping[Any, Any], path: KeyPath, parents: tuple[int, ...]
    ) -> dict[Any, Any]:
        items = {}
        for key, item in value.items():
            if type(key) in (str, int):
                items[key] = self.convert(item, (*path, key), parents)
            else:
                self._reject(f"the key {key!r} cannot be stored: use text or whole numbers", path)
        return items

    def _convert_sequence(self, value: Any, path: KeyPath, parents: tuple[int, ...]) -> Any:
        if holds_only_atoms(value):
            items = list(value)
        else:
            items = []
            for index, item in enumerate(value):
                items.append(self.convert(item, (*path, index), parents))
        return items if type(value) is list else tuple(items)

    def _reject(self, message: str, path: KeyPath, advice: str = "") -> None:
        self.problems.append(Problem(message, path, suggestion=Suggestion(advice=advice)))


def _numpy_scalar(value: Any) -> Any:
    """Return a NumPy scalar as a Python value; None if it is something else."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.bool_, numpy.number, numpy.str_)):
        return None
    item = value.item()
    return item if type(item) in ATOMS else None


def _numbers(tensor: Tensor) -> Tensor:
    """Return the values of a tensor in a dtype and layout that every reduction supports."""
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce().values()
    elif tensor.layout is not torch.strided:
        tensor = tensor.values()
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj()).flatten()
    if tensor.is_floating_point() and tensor.itemsize == 1:
        return tensor.float()
    return tensor


def _is_mask(tensor: Tensor) -> bool:
    zero = tensor == 0
    if tensor.dim() < 2 or not bool(zero.any()):
        return False
    return bool((zero | (tensor == -torch.inf)).all())


def _unsafe_content_error(stream: BinaryIO, name: str) -> UnsafeCheckpoint:
    """Return an error that names the code to which a file refers, without torch's advice.

    torch's message is a page long and recommends to switch off the protection.
    """
    message = "refused: not a file of torch.save with tensors and plain values"
    value = NO_VALUE
    try:
        stream.seek(0)
        found = get_unsafe_globals_in_checkpoint(stream)  # type: ignore[arg-type]
    except Exception:  # not a file of torch.save, or a damaged one
        found = []
    if found:
        message = "refused: only tensors and plain values are loaded"
        value = ", ".join(sorted(found))
    return UnsafeCheckpoint(message, file=name, value=value)
