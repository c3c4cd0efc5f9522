"""`mmengine.dist`: functions of torch.distributed that also work with a single process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as torch_dist

from hookline.compat.missing import not_covered


def is_distributed() -> bool:
    return torch_dist.is_available() and torch_dist.is_initialized()


def get_rank(group: Any = None) -> int:
    return torch_dist.get_rank(group) if is_distributed() else 0


def get_world_size(group: Any = None) -> int:
    return torch_dist.get_world_size(group) if is_distributed() else 1


def get_dist_info(group: Any = None) -> tuple[int, int]:
    return get_rank(group), get_world_size(group)


def is_main_process(group: Any = None) -> bool:
    return get_rank(group) == 0


def master_only(func: Callable[..., Any]) -> Callable[..., Any]:
    """Let only rank 0 call a function; it returns None on the others."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_main_process():
            return func(*args, **kwargs)
        return None

    return wrapper


def barrier(group: Any = None) -> None:
    if is_distributed():
        torch_dist.barrier(group)


def init_dist(launcher: str, backend: str | None = None, **kwargs: Any) -> None:
    """Join the job that torchrun (`pytorch`) or srun (`slurm`) started."""
    if launcher not in ("pytorch", "slurm"):
        raise ValueError(
            f"launcher {launcher!r} is not covered; start the job with torchrun and use "
            "launcher='pytorch'"
        )
    from hookline.dist import connect

    connect()


def all_reduce(data: torch.Tensor, op: str = "sum", group: Any = None) -> None:
    """Reduce a tensor over all ranks in place; `op` is `sum`, `mean`, `min`, `max` or `product`."""
    if not is_distributed():
        return
    reduction = "SUM" if op == "mean" else op.upper()
    torch_dist.all_reduce(data, getattr(torch_dist.ReduceOp, reduction), group)
    if op == "mean":
        data.div_(get_world_size(group))


def all_reduce_params(
    params: Iterable[torch.Tensor], coalesce: bool = True, bucket_size_mb: int = -1, op: str = "sum"
) -> None:
    for tensor in params:
        if tensor.is_floating_point():
            all_reduce(tensor.data, op)


def all_gather(data: torch.Tensor, group: Any = None) -> list[torch.Tensor]:
    if not is_distributed():
        return [data]
    gathered = [torch.empty_like(data) for _ in range(get_world_size(group))]
    torch_dist.all_gather(gathered, data, group)
    return gathered


def broadcast(data: torch.Tensor, src: int = 0, group: Any = None) -> None:
    if is_distributed():
        torch_dist.broadcast(data, src, group)


def broadcast_object_list(data: list[Any], src: int = 0, group: Any = None) -> None:
    if is_distributed():
        torch_dist.broadcast_object_list(data, src, group)


def all_gather_object(data: Any, group: Any = None) -> list[Any]:
    if not is_distributed():
        return [data]
    gathered: list[Any] = [None] * get_world_size(group)
    torch_dist.all_gather_object(gathered, data, group)
    return gathered


def collect_results(
    results: list[Any], size: int, device: str = "cpu", tmpdir: str | None = None
) -> list[Any] | None:
    """Return the results of all ranks in the order of the data; None except on rank 0.

    Results of samples that were repeated to fill the last round are dropped.
    """
    if not is_distributed():
        return results[:size]
    parts = all_gather_object(results)
    if not is_main_process():
        return None
    ordered: list[Any] = []
    for row in zip(*parts, strict=False):
        ordered.extend(row)
    return ordered[:size]


def sync_random_seed(group: Any = None) -> int:
    """Return a random seed that is the same on all ranks."""
    import numpy as np

    seed = torch.tensor(int(np.random.randint(2**31)))
    broadcast(seed, 0, group)
    return int(seed.item())


__all__ = [
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "all_reduce_params",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "collect_results",
    "get_dist_info",
    "get_rank",
    "get_world_size",
    "init_dist",
    "is_distributed",
    "is_main_process",
    "master_only",
    "sync_random_seed",
]
__getattr__ = not_covered(__name__, __all__)
