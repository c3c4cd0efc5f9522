"""`mmengine.dist`: functions of torch.distributed that also work with a single process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as torch_dist

from hookline.compat import openmmlab
from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE

collect_results = openmmlab.gather_results


def is_distributed() -> bool:
    return torch_dist.is_available() and torch_dist.is_initialized()


def get_rank() -> int:
    return torch_dist.get_rank() if is_distributed() else 0


def get_world_size() -> int:
    return torch_dist.get_world_size() if is_distributed() else 1


def get_dist_info() -> tuple[int, int]:
    return get_rank(), get_world_size()


def is_main_process() -> bool:
    return get_rank() == 0


def all_reduce_params(params: Iterable[torch.Tensor], op: str = "sum") -> None:
    """Replace tensors by their `sum` or `mean` over all ranks."""
    if not is_distributed():
        return
    for tensor in params:
        torch_dist.all_reduce(tensor.data)
        if op == "mean":
            tensor.data.copy_(torch.true_divide(tensor.data, get_world_size()))  # also integers


def broadcast(data: torch.Tensor, src: int = 0) -> None:
    if is_distributed():
        torch_dist.broadcast(data, src)


def broadcast_object_list(data: list[Any], src: int = 0) -> None:
    if is_distributed():
        torch_dist.broadcast_object_list(data, src)


def sync_random_seed() -> int:
    """Return a random seed that is the same on all ranks."""
    import numpy as np

    seed = torch.tensor(int(np.random.randint(2**31)))
    broadcast(seed)
    return int(seed.item())


__getattr__ = not_covered(__name__, advice=ADVICE)
