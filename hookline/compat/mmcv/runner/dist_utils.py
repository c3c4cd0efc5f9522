"""Distributed helpers of MMCV, on `torch.distributed`."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from hookline.compat import overlay
from hookline.compat.mmcv.errors import ADVICE
from hookline.dist import current_world

F = TypeVar("F", bound=Callable[..., Any])


def get_dist_info() -> tuple[int, int]:
    """Return the rank and the number of processes: `(0, 1)` if there is just one."""
    world = current_world()
    return world.rank, world.size


def master_only(func: F) -> F:
    """Let only rank 0 call a function; it returns None on the others."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if current_world().is_main:
            return func(*args, **kwargs)
        return None

    return wrapper  # type: ignore[return-value]


def init_dist(launcher: str, backend: str = "nccl", **kwargs: Any) -> None:
    """Initialize the process group of `torchrun`, or of `slurm` and `mpi` if MMCV is installed."""
    if launcher == "pytorch":
        if backend == "nccl" and not torch.cuda.is_available():
            backend = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["RANK"]) % torch.cuda.device_count())
        if not dist.is_initialized():
            dist.init_process_group(backend=backend, **kwargs)
        return
    if launcher not in ("slurm", "mpi"):
        raise ValueError(f"Invalid launcher type: {launcher}; use pytorch, slurm or mpi")
    if overlay.find("mmcv") is None:
        raise ValueError(
            f"the launcher {launcher!r} is not covered: start the processes with torchrun and use "
            f"launcher='pytorch', or {ADVICE}"
        )
    importlib.import_module("mmcv.runner.original_dist_utils").init_dist(
        launcher, backend, **kwargs
    )


def allreduce_params(
    params: Iterable[torch.Tensor], coalesce: bool = True, bucket_size_mb: int = -1
) -> None:
    """Average tensors, usually buffers, over all ranks; the other arguments are ignored."""
    world = current_world()
    if world.size == 1:
        return
    for param in params:
        if param.is_floating_point():
            dist.all_reduce(param.data.div_(world.size))


def allreduce_grads(
    params: Iterable[torch.nn.Parameter], coalesce: bool = True, bucket_size_mb: int = -1
) -> None:
    """Average gradients over all ranks; the other arguments are ignored."""
    gradients = []
    for param in params:
        if param.requires_grad and param.grad is not None:
            gradients.append(param.grad)
    allreduce_params(gradients)
