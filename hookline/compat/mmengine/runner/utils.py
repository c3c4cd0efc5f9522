"""Seeds and intervals."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmengine.dist import get_rank, sync_random_seed
from hookline.engine.environment import seed_everything


def set_random_seed(seed: int | None = None, deterministic: bool = False, diff_rank_seed: bool = False) -> int:
    """Seed python, numpy and torch; the seed, drawn if none is given."""
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


def calc_dynamic_intervals(start_interval: int, dynamic_interval_list: list[tuple[int, int]] | None = None) -> tuple[list[int], list[int]]:
    """From when on which interval holds."""
    changes: Any = dynamic_interval_list or []
    return [0, *(begin for begin, _ in changes)], [start_interval, *(interval for _, interval in changes)]
