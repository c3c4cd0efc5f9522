"""What MMCV's code asks of `torch.distributed`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from hookline.dist import current_world

F = TypeVar("F", bound=Callable[..., Any])


def get_dist_info() -> tuple[int, int]:
    """Rank and number of processes; `(0, 1)` where there is just one."""
    world = current_world()
    return world.rank, world.size


def master_only(func: F) -> F:
    """Decorator: only the main process calls it."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs) if current_world().is_main else None

    return wrapper  # type: ignore[return-value]


def init_dist(launcher: str, backend: str = "nccl", **kwargs: Any) -> None:
    """Join the processes that `torchrun` has started; Slurm's and MPI's own variables are not read."""
    if launcher != "pytorch":
        raise ValueError(f"launcher {launcher!r} is not covered: start the processes with torchrun and use launcher='pytorch'")
    if backend == "nccl" and not torch.cuda.is_available():
        backend = "gloo"
    if not dist.is_initialized():
        dist.init_process_group(backend=backend, **kwargs)


def allreduce_params(params: Iterable[torch.Tensor], coalesce: bool = True, bucket_size_mb: int = -1) -> None:
    """Make tensors (buffers, usually) their mean over all processes; `coalesce` and `bucket_size_mb` change nothing in that."""
    world = current_world()
    if world.size > 1:
        for param in params:
            if param.is_floating_point():
                dist.all_reduce(param.data.div_(world.size))


def allreduce_grads(params: Iterable[torch.nn.Parameter], coalesce: bool = True, bucket_size_mb: int = -1) -> None:
    """The same for gradients."""
    allreduce_params([param.grad for param in params if param.requires_grad and param.grad is not None])
