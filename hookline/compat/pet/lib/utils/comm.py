"""Rank, world size and barrier of the job."""

from __future__ import annotations

from hookline.dist import current_world


def get_rank() -> int:
    return current_world().rank


def get_world_size() -> int:
    return current_world().size


def is_main_process() -> bool:
    return current_world().is_main


def synchronize() -> None:
    """Wait for all ranks."""
    world = current_world()
    if world.size > 1:
        world.barrier()
