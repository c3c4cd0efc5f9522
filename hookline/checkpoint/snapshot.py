"""A copy of a checkpoint in host memory, so that training goes on while the copy is written."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.formats import check_plain, tensors
from hookline.errors import Path, dotted

_Storage = tuple[torch.device, int]


class Snapshot:
    """Copies checkpoints into memory that it keeps: new memory costs ten times as much as the copy itself.

    What `take` returns is overwritten by the next `take`, so it must have been written by then.
    """

    def __init__(self) -> None:
        self._buffers: dict[Path, Tensor] = {}
        self._later: list[_Copy] = []
        self._changed: list[str] = []  # until the next take: nobody may write a copy that another thread found torn
        self._mutex = threading.Lock()

    def take(self, checkpoint: Mapping[str, Any], later: Iterable[Tensor] = ()) -> dict[str, Any]:
        """A copy that changes no more; ConfigError if the checkpoint holds something that cannot be stored.

        The tensors in `later` are copied by `complete()` and must not change before it has returned: parameters and
        optimizer state, for instance, which no forward or backward pass changes.
        """
        plain = check_plain(checkpoint)
        with self._mutex:
            plan = _Plan(plain, self._buffers)
            copy: dict[str, Any] = plan.rebuild(plain, ())
            self._buffers, self._changed = plan.buffers, []
            delayed = {_storage(tensor) for tensor in later}
            self._later = [item for item in plan.copies if item.storage in delayed]
            _run([item for item in plan.copies if item.storage not in delayed])
        return copy

    def complete(self) -> None:
        """Copy what `take` left for later; from any thread, and from a second one it waits for the first."""
        with self._mutex:
            copies, self._later = self._later, []
            _run(copies)  # and the check is made before anyone who waits for the copy may change the tensors
            self._changed += [dotted(item.path) for item in copies if _version(item.tensor) != item.version]
            if self._changed:
                raise CheckpointError(
                    f"not saved: changed while the checkpoint was copied: {', '.join(self._changed[:3])}; if something other than the "
                    f"optimizer changes them, CheckpointHook(async_save=False) saves before training goes on"
                )


class _Copy(NamedTuple):
    source: Tensor
    buffer: Tensor
    path: Path
    tensor: Tensor  # the one that the user knows, whose version tells of changes
    version: int
    storage: _Storage


class _Plan:
    """Where each tensor of a checkpoint goes; storages that several tensors share are kept once, as in the original."""

    def __init__(self, plain: Mapping[str, Any], old: dict[Path, Tensor]) -> None:
        self.buffers: dict[Path, Tensor] = {}
        self.copies: list[_Copy] = []
        self._old = old
        self._storages = {id(tensor): _storage(tensor) for _, tensor in tensors(plain)}
        self._uses = Counter(self._storages.values())
        self._shared: dict[_Storage, Tensor] = {}

    def rebuild(self, value: Any, path: Path) -> Any:
        if isinstance(value, Tensor):
            return self._place(value, path)
        if isinstance(value, dict):
            return type(value)({key: self.rebuild(item, (*path, key)) for key, item in value.items()})
        if isinstance(value, (list, tuple)):
            return type(value)(self.rebuild(item, (*path, index)) for index, item in enumerate(value))
        return value

    def _place(self, tensor: Tensor, path: Path) -> Tensor:
        storage = self._storages[id(tensor)]
        if storage is None:
            return tensor.to("cpu", copy=True)
        if self._uses[storage] == 1:  # then the tensor alone, not the larger storage it may be cut from
            return self._buffer(tensor, tensor, path, storage)
        if storage not in self._shared:
            everything = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
            self._shared[storage] = self._buffer(everything, tensor, path, storage)
        view = torch.empty(0, dtype=tensor.dtype)
        return view.set_(self._shared[storage].untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())

    def _buffer(self, source: Tensor, tensor: Tensor, path: Path, storage: _Storage) -> Tensor:
        buffer = self._old.get(path)
        if buffer is None or buffer.shape != source.shape or buffer.dtype != source.dtype:
            buffer = torch.empty_like(source, device="cpu", pin_memory=source.is_cuda)
        self.buffers[path] = buffer
        self.copies.append(_Copy(source, buffer, path, tensor, _version(tensor), storage))
        return buffer


def _run(copies: Sequence[_Copy]) -> None:
    for item in copies:
        if item.source.is_cpu and item.source.stride() == item.buffer.stride():
            _memory(item.buffer)[:] = _memory(item.source)
        else:
            item.buffer.copy_(item.source, non_blocking=item.source.is_cuda)
    for device in {item.source.device for item in copies if item.source.is_cuda}:
        torch.cuda.synchronize(device)


def _memory(tensor: Tensor) -> Any:
    """The bytes of a dense tensor as an array."""
    # numpy copies in one thread, almost as fast as torch does in several, and unlike torch it does not wait at a barrier
    # per tensor for threads whose cores are busy loading data: that can make the whole copy thirty times slower.
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8).numpy()


def _storage(tensor: Tensor) -> _Storage | None:
    """What tensors that share memory have in common; None for those that have no storage of their own to keep."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return None
    return tensor.device, tensor.untyped_storage().data_ptr()


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
