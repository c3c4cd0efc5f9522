"""The rendezvous of a job: the store through which its ranks find each other."""

from __future__ import annotations

import os
import secrets
import time
from datetime import timedelta
from typing import Any, NamedTuple

import torch.distributed as dist

from hookline.errors import HooklineError

ADDRESS_KEY = "hookline/rendezvous"
NAME_KEY = "name"
TIMEOUT_S = 300.0  # All ranks must have started by then.
CONNECT_TIMEOUT_S = 5.0  # For one attempt with an address that may be stale.
RETRY_S = 0.2


class Launch(NamedTuple):
    """The rank of this process and the address of its job, from the environment."""

    rank: int
    size: int
    local_rank: int
    address: str
    port: int


def rendezvous(launch: Launch, timeout: float = TIMEOUT_S) -> Any:
    """Return the store through which the ranks of this start of the job find each other.

    torchrun's store survives a restart of the ranks and keeps all they wrote, including the old
    addresses. Rank 0 therefore opens a new store and publishes its port in torchrun's. Other ranks
    may read a stale port first: nothing listens there, or a store with another name; they retry.

    Raises:
        HooklineError: If a rank does not find rank 0 within `timeout` seconds.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return _open_store(launch.address, launch.port, launch.rank == 0, timeout)
    agent_store = _open_store(launch.address, launch.port, False, timeout)
    if launch.rank == 0:
        return _open_and_publish(agent_store, launch.address, timeout)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        store = _find_published(agent_store, launch.address)
        if store is not None:
            store.set_timeout(timedelta(seconds=timeout))
            return store
        time.sleep(RETRY_S)
    raise HooklineError(
        f"rank {launch.rank} could not connect to rank 0 at {launch.address} within "
        f"{timeout:.0f} s: check that rank 0 has started and that the address can be reached"
    )


def _open_and_publish(agent_store: Any, address: str, timeout: float) -> Any:
    name = secrets.token_hex(8)
    store = _open_store(address, 0, True, timeout)
    store.set(NAME_KEY, name)
    agent_store.set(ADDRESS_KEY, f"{store.port} {name}")
    return store


def _find_published(agent_store: Any, address: str) -> Any | None:
    """Return the store that rank 0 has published last; None if the entry is stale."""
    port, name = agent_store.get(ADDRESS_KEY).decode().split()
    try:
        store = _open_store(address, int(port), False, CONNECT_TIMEOUT_S)
        if store.get(NAME_KEY).decode() == name:
            return store
    except RuntimeError:
        pass  # Nothing listens there any more.
    return None


def _open_store(address: str, port: int, is_master: bool, timeout: float) -> Any:
    return dist.TCPStore(  # type: ignore[attr-defined]
        address,
        port,
        is_master=is_master,
        timeout=timedelta(seconds=timeout),
        wait_for_workers=False,
    )
