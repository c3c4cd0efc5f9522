"""Seed a run, and compute intervals that change."""

from __future__ import annotations

import torch

from hookline.compat.mmengine.dist import get_rank, sync_random_seed
from hookline.rng import seed_everything


def set_random_seed(
    seed: int | None = None, deterministic: bool = False, diff_rank_seed: bool = False
) -> int:
    """Seed python, numpy and torch; return the seed, which is random by default."""
    if seed is None:
        seed = sync_random_seed()
    if diff_rank_seed:
        seed += get_rank()
    seed_everything(seed)
    if deterministic:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True)
    return seed


def calc_dynamic_intervals(
    start_interval: int, dynamic_interval_list: list[tuple[int, int]] | None = None
) -> tuple[list[int], list[int]]:
    """Return the beginnings of periods, and the interval in each."""
    milestones = [0]
    intervals = [start_interval]
    for begin, interval in dynamic_interval_list or []:
        milestones.append(begin)
        intervals.append(interval)
    return milestones, intervals
