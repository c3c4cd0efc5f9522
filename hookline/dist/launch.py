"""Find out how this process was launched (alone, torchrun, SLURM), and launch several."""

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

from hookline.dist.rendezvous import Launch, rendezvous
from hookline.dist.world import World, current_world
from hookline.errors import HooklineError

COLLECTIVE_TIMEOUT = timedelta(minutes=30)  # The watchdog acts long before.


def find_launch(environ: Mapping[str, str] = os.environ) -> Launch | None:
    """Return the job of torchrun or srun that launched this process; None if there is none."""
    if "RANK" in environ and "WORLD_SIZE" in environ:
        return _from_torchrun(environ)
    # Only srun sets this variable: a batch script or a shell in an allocation is not a rank.
    if int(environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1 and "SLURM_PROCID" in environ:
        return _from_slurm(environ)
    return None


def connect() -> World:
    """Join the job of this process, if it has one; a second call changes nothing."""
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
    dist.init_process_group(
        backend,
        store=rendezvous(launch),
        rank=launch.rank,
        world_size=launch.size,
        timeout=COLLECTIVE_TIMEOUT,
    )
    atexit.register(disconnect)
    return current_world()


def disconnect() -> None:
    """Leave the job of this process, if it has one."""
    atexit.unregister(disconnect)
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def first_launch_time(world: World) -> float | None:
    """Return when a job that torchrun has restarted was first launched; None without a restart.

    torchrun counts restarts by machine: other machines may have none, and a machine that replaces
    another begins at 0. Its store is shared by all and outlives the processes.
    """
    counts = world.gather_text(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    was_restarted = any(count != "0" for count in counts)
    now = str(time.time())
    first = "0" if was_restarted else ""
    if world.is_main and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store = dist.TCPStore(  # type: ignore[attr-defined]
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False
        )
        key = f"hookline/started/{os.environ.get('TORCHELASTIC_RUN_ID', '')}"
        stored = store.compare_set(key, "", now).decode()
        if stored != now:
            first = stored
    first = world.broadcast_str(first)
    return float(first) if first else None


def report_to_torchrun(error: BaseException) -> None:
    """Write an error to the file in which torchrun looks for the first failure, if there is one."""
    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)


def torchrun_command(nproc: int, arguments: Sequence[str], max_restarts: int = 0) -> list[str]:
    """Return the command that runs `python -m hookline` in several processes of this machine."""
    options = [
        "--standalone",
        "--nproc-per-node",
        str(nproc),
        "--max-restarts",
        str(max_restarts),
        "--monitor-interval",
        "1",
    ]
    return [sys.executable, "-m", "torch.distributed.run", *options, "-m", "hookline", *arguments]


def _from_torchrun(environ: Mapping[str, str]) -> Launch:
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in environ]
    if missing:
        raise HooklineError(
            f"RANK and WORLD_SIZE are set, but {' and '.join(missing)} not: launch the job with "
            "torchrun, or unset these variables"
        )
    rank, size = _read_int(environ, "RANK"), _read_int(environ, "WORLD_SIZE")
    local = _read_int(environ, "LOCAL_RANK") if "LOCAL_RANK" in environ else rank
    return Launch(rank, size, local, environ["MASTER_ADDR"], _read_int(environ, "MASTER_PORT"))


def _from_slurm(environ: Mapping[str, str]) -> Launch:
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or "localhost"
    job = int(environ.get("SLURM_JOB_ID", "0"))
    return Launch(
        _read_int(environ, "SLURM_PROCID"),
        _read_int(environ, "SLURM_STEP_NUM_TASKS"),
        int(environ.get("SLURM_LOCALID", "0")),
        environ.get("MASTER_ADDR") or first_host(nodes),
        int(environ.get("MASTER_PORT") or 20000 + job % 20000),  # a port for each job
    )


def first_host(nodes: str) -> str:
    """Return the first host of SLURM's node list: gpu003 for `gpu[003-007,9],cpu1`."""
    match = re.match(r"([^\[,]+)(?:\[([^\],-]+)[^\]]*\]([^,]*))?", nodes.strip())
    if match is None:
        raise HooklineError(
            f"cannot parse SLURM's node list {nodes!r}: set MASTER_ADDR to the first node's name"
        )
    prefix, number, suffix = match.groups()
    return f"{prefix}{number or ''}{suffix or ''}"


def _read_int(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise HooklineError(
            f"the environment variable {name} must be an integer, got {environ[name]!r}"
        ) from None
