"""Where and when a run is, and seeding."""

from __future__ import annotations

import getpass
import socket
import time

import torch

from hookline.engine import seed_everything


def get_host_info() -> str:
    """`user@host`, or what of it can be found out."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except Exception:  # a container may have no name for its user
        return "unknown host"


def get_time_str() -> str:
    return time.strftime("%Y%m%d_%H%M%S", time.localtime())


def set_random_seed(seed: int, deterministic: bool = False, use_rank_shift: bool = False) -> None:
    """Seed python, numpy and torch; with `use_rank_shift` each process otherwise."""
    from hookline.compat.mmcv.runner.dist_utils import get_dist_info

    seed_everything(seed + get_dist_info()[0] if use_rank_shift else seed)
    if deterministic:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
