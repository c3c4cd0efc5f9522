"""Where the processes of a job find each other."""

from __future__ import annotations

import os
import secrets
import time
from datetime import timedelta
from typing import Any, NamedTuple

import torch.distributed as dist

from hookline.errors import HooklineError

PLACE = "hookline/meeting"
PATIENCE = 300.0  # seconds until all processes must have been started
TRY = timedelta(seconds=5)


class Launch(NamedTuple):
    """What the environment says about a job of several processes."""

    rank: int
    size: int
    local_rank: int
    address: str
    port: int


def meet(launch: Launch) -> Any:
    """The store through which the processes of this start of the job find each other.

    torchrun's own store outlives a restart of the processes, and with it what the dead ones have written there: where these
    listened, of all things. So the main process opens another one, and leaves a note where it is; one that was left
    before the restart leads nowhere, and is read again.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return _store(launch.address, launch.port, launch.rank == 0, timedelta(seconds=PATIENCE))
    notes = _store(launch.address, launch.port, False, timedelta(seconds=PATIENCE))
    if launch.rank == 0:
        name = secrets.token_hex(8)
        store = _store(launch.address, 0, True, timedelta(seconds=PATIENCE))
        store.set("name", name)
        notes.set(PLACE, f"{store.port} {name}")
        return store
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        port, name = notes.get(PLACE).decode().split()
        try:
            store = _store(launch.address, int(port), False, TRY)
            if store.get("name").decode() == name:
                store.set_timeout(timedelta(seconds=PATIENCE))
                return store
        except RuntimeError:  # the note is older than this start
            time.sleep(0.2)
    raise HooklineError(f"process {launch.rank} has not found the others within {PATIENCE:.0f} s")


def _store(address: str, port: int, serves: bool, timeout: timedelta) -> Any:
    return dist.TCPStore(address, port, is_master=serves, timeout=timeout, wait_for_workers=False)  # type: ignore[attr-defined]
