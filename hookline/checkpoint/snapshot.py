"""A copy of a checkpoint in host memory, so that training continues while the copy is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hookline.checkpoint.formats import check_plain, iterate_tensors
from hookline.errors import KeyPath

_StorageKey = tuple[torch.device, int]


class Snapshot:
    """Copies checkpoints into buffers that it keeps: new memory costs ten times the copy itself.

    The next `take` overwrites the result of the previous one, which must be on disk by then.
    """

    def __init__(self) -> None:
        self._buffers: dict[KeyPath, Tensor] = {}

    def take(self, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy; raise ConfigError if the checkpoint holds values that cannot be stored."""
        plain = check_plain(checkpoint)
        plan = _CopyPlan(plain, self._buffers)
        copy: dict[str, Any] = plan.rebuild(plain, ())
        self._buffers = plan.buffers
        _run(plan.copies)
        return copy


class _Copy(NamedTuple):
    source: Tensor
    buffer: Tensor


class _CopyPlan:
    """The buffer of each tensor. A storage that several tensors share is copied once."""

    def __init__(self, plain: Mapping[str, Any], old: dict[KeyPath, Tensor]) -> None:
        self.buffers: dict[KeyPath, Tensor] = {}
        self.copies: list[_Copy] = []
        self._old = old
        self._storages: dict[int, _StorageKey | None] = {}
        for _, tensor in iterate_tensors(plain):
            self._storages[id(tensor)] = _storage_key(tensor)
        self._uses = Counter(self._storages.values())
        self._shared: dict[_StorageKey, Tensor] = {}

    def rebuild(self, value: Any, path: KeyPath) -> Any:
        """Return a nested structure with buffers in place of its tensors."""
        if isinstance(value, Tensor):
            return self._place(value, path)
        if isinstance(value, dict):
            items = {}
            for key, item in value.items():
                items[key] = self.rebuild(item, (*path, key))
            return type(value)(items)
        if isinstance(value, (list, tuple)):
            rebuilt = []
            for index, item in enumerate(value):
                rebuilt.append(self.rebuild(item, (*path, index)))
            return type(value)(rebuilt)
        return value

    def _place(self, tensor: Tensor, path: KeyPath) -> Tensor:
        """Return the tensor that will hold the copy."""
        storage = self._storages[id(tensor)]
        if storage is None:
            return tensor.to("cpu", copy=True)
        if self._uses[storage] == 1:  # Copy the tensor alone: its storage may be much larger.
            return self._buffer(tensor, path)
        if storage not in self._shared:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
            whole.set_(tensor.untyped_storage())
            self._shared[storage] = self._buffer(whole, path)
        view = torch.empty(0, dtype=tensor.dtype)
        return view.set_(
            self._shared[storage].untyped_storage(),
            tensor.storage_offset(),
            tensor.size(),
            tensor.stride(),
        )

    def _buffer(self, source: Tensor, path: KeyPath) -> Tensor:
        buffer = self._old.get(path)
        if buffer is None or buffer.shape != source.shape or buffer.dtype != source.dtype:
            buffer = torch.empty_like(source, device="cpu", pin_memory=source.is_cuda)
        self.buffers[path] = buffer
        self.copies.append(_Copy(source, buffer))
        return buffer


def _run(copies: Sequence[_Copy]) -> None:
    devices = set()
    for source, buffer in copies:
        if source.is_cpu and source.stride() == buffer.stride():
            _memory(buffer)[:] = _memory(source)
        else:
            buffer.copy_(source, non_blocking=source.is_cuda)
        if source.is_cuda:
            devices.add(source.device)
    for device in devices:
        torch.cuda.synchronize(device)


def _memory(tensor: Tensor) -> Any:
    """Return the bytes of a dense tensor as an array.

    NumPy copies in one thread, almost as fast as torch in several. Torch waits at a barrier for
    each tensor, and a copy takes thirty times as long when other cores are busy loading data.
    """
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8).numpy()


def _storage_key(tensor: Tensor) -> _StorageKey | None:
    """Return a key that tensors with the same memory share; None if a tensor has no storage."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return None
    return tensor.device, tensor.untyped_storage().data_ptr()
