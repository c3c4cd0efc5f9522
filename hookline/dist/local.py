"""Launch a function in several processes on this machine, from a script or a notebook."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.spawn import start_processes

from hookline.dist.launch import disconnect
from hookline.errors import HooklineError, Interrupted, Suggestion
from hookline.signals import forward_signals


class Job(NamedTuple):
    """A function that each rank calls."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    named: Mapping[str, Any]
    nproc: int
    port: int
    result: Path
    threads: int


def launch(function: Callable[..., Any], *arguments: Any, nproc: int = 2, **named: Any) -> Any:
    """Call a function in several processes on this machine; return its result of rank 0.

    A `Runner` in the function trains with all processes. A function of a module is imported by new
    processes. One of a notebook or an interactive session is called in forked processes, with one
    thread each. These cannot use a GPU that this process has used already: launch first.

    Args:
        function: The function.
        arguments: Its arguments.
        nproc: The number of processes.
        named: Its keyword arguments.

    Returns:
        The result of rank 0: tensors, numbers, texts, and containers of these.

    Raises:
        HooklineError: If CUDA was used before a fork, or the result cannot be passed back.
        Interrupted: If a signal stopped the processes.
    """
    if nproc < 1:
        message = "nproc must be a whole number of at least 1"
        raise HooklineError(message, component="launch", parameter="nproc")
    is_new = _is_importable(function)
    if not is_new and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        raise HooklineError(
            "this process has used the GPU, which a forked process cannot use again",
            component="launch",
            suggestion=Suggestion(
                advice="restart the kernel and launch first, or move the function to a module"
            ),
        )
    threads = max(1, (os.cpu_count() or 1) // nproc) if is_new else 1
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.pt")
        job = Job(function, arguments, named, nproc, _free_port(), result, threads)
        _run(job, "spawn" if is_new else "fork")
        return _load(result)


def _run(job: Job, start_method: str) -> None:
    """Start the processes and wait until all have ended."""
    processes: list[Any] = []

    def send(signum: int) -> None:
        for process in processes:
            if process.is_alive():
                os.kill(process.pid, signum)

    with forward_signals(send) as forwarded:
        context = start_processes(  # type: ignore[no-untyped-call]
            _call, (job,), nprocs=job.nproc, join=False, start_method=start_method
        )
        processes += context.processes
        waiting = {process.sentinel for process in processes}
        while waiting:
            waiting -= set(connection.wait(list(waiting)))
            if not forwarded:  # Raises the error of a failed process, and ends the others.
                context.join(timeout=0)
    if forwarded and any(process.exitcode for process in processes):
        raise Interrupted(forwarded[0])


def _call(rank: int, job: Job) -> None:
    """Call the function as a rank."""
    os.setsid()  # Ctrl-C reaches the process once: the launching process forwards it.
    # A forked process must not use the threads of the process that it was forked from.
    torch.set_num_threads(job.threads)
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(job.nproc),
        LOCAL_RANK=str(rank),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(job.port),
    )
    try:
        result = job.function(*job.arguments, **job.named)
        if rank == 0:
            torch.save(result, job.result)
    finally:
        disconnect()


def _load(path: Path) -> Any:
    try:
        return torch.load(path, weights_only=True)
    except pickle.UnpicklingError as error:
        advice = "return tensors, numbers and texts, or write a file"
        raise HooklineError(
            "the result of the function cannot be passed to this process",
            component="launch",
            suggestion=Suggestion(advice=advice),
        ) from error


def _is_importable(function: Callable[..., Any]) -> bool:
    """Return whether a new process can import a function."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if not hasattr(module, "__file__"):  # `__main__` of a notebook or an interpreter
        return False
    names = getattr(function, "__qualname__", "").split(".")
    found: Any = module
    for name in names:
        found = getattr(found, name, None)
    return found is function


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
