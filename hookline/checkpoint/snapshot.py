"""A copy of a checkpoint in host memory, so that training continues while the copy is written."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.formats import check_plain, holds_only_atoms, iterate_tensors
from hookline.errors import KeyPath

_StorageKey = tuple[torch.device, int]


class Snapshot:
    """Copies checkpoints into buffers that it keeps: new memory costs ten times the copy itself.

    The next `take` overwrites the result of the previous one, which must be on disk by then.

    Attributes:
        rest: The copies that the last `take` has postponed. The result is complete after their
            `run`.
    """

    def __init__(self) -> None:
        self.rest = PostponedCopies()
        self._buffers: dict[KeyPath, Tensor] = {}

    def take(
        self, checkpoint: Mapping[str, Any], postponed: Iterable[Tensor] = ()
    ) -> dict[str, Any]:
        """Return a copy.

        Args:
            checkpoint: Tensors and plain values.
            postponed: Tensors of it that `rest` copies. Those of accelerators are copied at once.

        Raises:
            ConfigError: If the checkpoint holds values that cannot be stored.
        """
        plain = check_plain(checkpoint)
        plan = _CopyPlan(plain, self._buffers)
        copy: dict[str, Any] = plan.rebuild(plain, ())
        self._buffers = plan.buffers
        later = [tensor for tensor in postponed if tensor.is_cpu]
        keys = {_storage_key(tensor) for tensor in later} - {None}
        rest = [each for each in plan.copies if _storage_key(each.source) in keys]
        self.rest = PostponedCopies(rest, later)
        _run([each for each in plan.copies if _storage_key(each.source) not in keys])
        return copy


class _Copy(NamedTuple):
    source: Tensor
    buffer: Tensor


class PostponedCopies:
    """Copies that a thread makes while training continues, until the optimizer steps.

    Args:
        copies: The copies to make.
        sources: The tensors that must not change meanwhile.
    """

    def __init__(self, copies: Sequence[_Copy] = (), sources: Sequence[Tensor] = ()) -> None:
        self._copies = copies
        self._sources = sources
        self._versions = self._read_versions()
        self._made = threading.Event()
        if not self._copies:
            self._made.set()

    def run(self) -> None:
        """Make the copies.

        Raises:
            CheckpointError: If a tensor was changed meanwhile. Changes through `data` or NumPy are
                not noticed.
        """
        try:
            _run(self._copies)
            unchanged = self._read_versions() == self._versions
        finally:
            self._made.set()
        if not unchanged:
            raise CheckpointError(
                "not saved: weights or optimizer state changed before the optimizer's step; set "
                "overlap_copy=False"
            )

    def wait(self) -> None:
        """Return when the copies are made. Only then may the tensors change."""
        self._made.wait()

    def _read_versions(self) -> list[int]:
        return [source._version for source in self._sources]  # noqa: SLF001


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
        if isinstance(value, (list, tuple)) and not holds_only_atoms(value):
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
