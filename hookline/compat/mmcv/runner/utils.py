"""Host and time of a run, and seeding."""

from __future__ import annotations

import getpass
import socket
import time

import torch

from hookline.engine import seed_everything


def get_host_info() -> str:
    """Return `user@host`, or `unknown host`."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError, ImportError):  # a container may have no name for its user
        return "unknown host"


def get_time_str() -> str:
    return time.strftime("%Y%m%d_%H%M%S", time.localtime())


def set_random_seed(seed: int, deterministic: bool = False, use_rank_shift: bool = False) -> None:
    """Seed python, numpy and torch; with `use_rank_shift`, add the rank to the seed."""
    from hookline.compat.mmcv.runner.dist_utils import get_dist_info

    if use_rank_shift:
        rank, _ = get_dist_info()
        seed += rank
    seed_everything(seed)
    if deterministic:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
