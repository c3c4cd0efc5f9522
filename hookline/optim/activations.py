"""A limit for the memory of activations: the tensors that a forward pass keeps for backward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch.autograd.graph import saved_tensors_hooks

MB = 10**6


@contextmanager
def activation_limit(limit_mb: float | None, weights: Iterable[torch.Tensor]) -> Iterator[None]:
    """Raise OutOfMemoryError inside a `with` block as soon as the activations exceed a limit.

    The memory is counted, not measured: the same forward pass always fails or fits, on every
    device. Tensors that share memory count once.

    Args:
        limit_mb: The limit in MB; None for no limit.
        weights: Parameters and buffers, which do not count.
    """
    if limit_mb is None:
        yield
        return
    uncounted = {each.untyped_storage().data_ptr() for each in weights}
    sizes: dict[int, int] = {}  # by address
    counted: list[torch.Tensor] = []  # alive, so that no address is used twice

    def pack(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
        kept = tensor.detach()
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in uncounted:
                # A part of a batch shares its memory, and an expanded tensor needs less.
                size = min(tensor.nbytes, storage.nbytes())
                sizes[tensor.data_ptr()] = max(size, sizes.get(tensor.data_ptr(), 0))
                counted.append(kept)
                if sum(sizes.values()) > limit_mb * MB:
                    raise torch.OutOfMemoryError(f"the activations exceed {limit_mb} MB")
        return kept, tensor._version  # noqa: SLF001, as torch's own check does

    try:
        with saved_tensors_hooks(pack, _unpack):
            yield
    finally:
        counted.clear()


def _unpack(packed: tuple[torch.Tensor, int]) -> torch.Tensor:
    tensor, version = packed
    if tensor._version != version:  # noqa: SLF001, torch does not check packed tensors
        raise RuntimeError(
            "a tensor that the backward pass needs was modified by an in-place operation"
        )
    return tensor
