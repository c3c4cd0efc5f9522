"""How this process was started: alone, by torchrun, or by SLURM; and how to start several."""

from __future__ import annotations

import atexit
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from hookline.dist.meeting import Launch, meet
from hookline.dist.world import World, current_world
from hookline.errors import HooklineError

COLLECTIVE_TIMEOUT = timedelta(minutes=30)  # the watch is there long before


def find_launch(environ: Mapping[str, str] = os.environ) -> Launch | None:
    """The job that this process was started for by torchrun (or its like) or by srun; None if by neither."""
    if "RANK" in environ and "WORLD_SIZE" in environ:
        return _from_torchrun(environ)
    # Only srun sets this one: a batch script, or a shell inside of an allocation, is one process and not a rank.
    if int(environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1 and "SLURM_PROCID" in environ:
        return _from_slurm(environ)
    return None


def connect() -> World:
    """Join the job that this process was started for, if it was; the second call changes nothing."""
    launch = None if dist.is_available() and dist.is_initialized() else find_launch()
    if launch is None:
        return current_world()
    os.environ.update(
        RANK=str(launch.rank),
        WORLD_SIZE=str(launch.size),
        LOCAL_RANK=str(launch.local_rank),
        MASTER_ADDR=launch.address,
        MASTER_PORT=str(launch.port),
    )
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(launch.local_rank % torch.cuda.device_count())
    dist.init_process_group(backend, store=meet(launch), rank=launch.rank, world_size=launch.size, timeout=COLLECTIVE_TIMEOUT)
    atexit.register(disconnect)
    return current_world()


def disconnect() -> None:
    """Leave the job; nothing happens where there is none."""
    atexit.unregister(disconnect)
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def started_before(world: World) -> float | None:
    """When torchrun first started this job, in seconds of the clock, if it has started it anew since; the same on all processes.

    Its count of restarts is that of one machine: the others may have none, and a machine that replaces another begins at 0. Its
    store is that of all, where it is shared, and outlives the processes.
    """
    anew = any(count != "0" for count in world.gather_text(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")))
    now, first = str(time.time()), "0" if anew else ""
    if world.is_main and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)  # type: ignore[attr-defined]
        noted = store.compare_set(f"hookline/started/{os.environ.get('TORCHELASTIC_RUN_ID', '')}", "", now).decode()
        first = noted if noted != now else first
    first = world.main_says(first)
    return float(first) if first else None


def tell_torchrun(error: BaseException) -> None:
    """Leave an error where torchrun looks for the first one that happened; nothing happens without torchrun."""
    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)


def torchrun_command(nproc: int, arguments: Sequence[str], max_restarts: int = 0) -> list[str]:
    """The command that runs `python -m hookline` with these arguments in several processes of this machine."""
    options = ["--standalone", "--nproc-per-node", str(nproc), "--max-restarts", str(max_restarts), "--monitor-interval", "1"]
    return [sys.executable, "-m", "torch.distributed.run", *options, "-m", "hookline", *arguments]


def _from_torchrun(environ: Mapping[str, str]) -> Launch:
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in environ]
    if missing:
        raise HooklineError(f"RANK and WORLD_SIZE are set, but {' and '.join(missing)} not: start the job with torchrun, or unset them")
    rank, size = _whole(environ, "RANK"), _whole(environ, "WORLD_SIZE")
    local = _whole(environ, "LOCAL_RANK") if "LOCAL_RANK" in environ else rank
    return Launch(rank, size, local, environ["MASTER_ADDR"], _whole(environ, "MASTER_PORT"))


def _from_slurm(environ: Mapping[str, str]) -> Launch:
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or "localhost"
    job = int(environ.get("SLURM_JOB_ID", "0"))
    return Launch(
        _whole(environ, "SLURM_PROCID"),
        _whole(environ, "SLURM_STEP_NUM_TASKS"),
        int(environ.get("SLURM_LOCALID", "0")),
        environ.get("MASTER_ADDR") or first_host(nodes),
        int(environ.get("MASTER_PORT") or 20000 + job % 20000),  # two jobs on one machine get two ports
    )


def first_host(nodes: str) -> str:
    """The first of SLURM's node list: `gpu[003-007,9],cpu1` begins with gpu003."""
    match = re.match(r"([^\[,]+)(?:\[([^\],-]+)[^\]]*\]([^,]*))?", nodes.strip())
    if match is None:
        raise HooklineError(f"cannot read SLURM's list of nodes, {nodes!r}: set MASTER_ADDR to the first node's name")
    prefix, number, suffix = match.groups()
    return f"{prefix}{number or ''}{suffix or ''}"


def _whole(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise HooklineError(f"the environment variable {name} must be a whole number, got {environ[name]!r}") from None
