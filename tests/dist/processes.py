"""Real jobs of several processes: forked from one that has everything imported, so that one costs a second and not ten."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch

from tests.waiting import LIMIT_S

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "torch",
        "torch._dynamo",  # The first optimizer of a process imports it.
        "torch.distributed.fsdp",
        "torch.distributed.checkpoint",
        "torchmetrics",
        "hookline.hooks.logger_hook",
        "hookline.hooks.optimizer_hook",
        "hookline.report.recorder",
        "tests.dist.jobs",
    ]
)


class Job:
    """A job under way: its processes, and what they returned or raised."""

    started: ClassVar[list[Job]] = []

    def __init__(
        self, count: int, function: Callable[..., Any], folder: Path, **options: Any
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        port = _free_port()
        self.processes = [
            CONTEXT.Process(target=_child, args=(rank, count, port, function, folder, options))
            for rank in range(count)
        ]
        for process in self.processes:
            process.start()
        self.started.append(self)

    @classmethod
    def end_all(cls) -> None:
        """Leave nothing behind, whatever became of the test."""
        while cls.started:
            for process in cls.started.pop().processes:
                process.kill()

    def wait(self) -> Job:
        """Wait until all processes have ended; kill those that hang."""
        deadline = time.monotonic() + LIMIT_S
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        hanging = [rank for rank, process in enumerate(self.processes) if process.is_alive()]
        for process in self.processes:
            process.kill()
        assert not hanging, f"ranks {hanging} did not end within {LIMIT_S} s: {self.errors()}"
        return self

    def results(self) -> list[Any]:
        """What each process returned; AssertionError with the traceback of one that failed."""
        self.wait()
        errors = self.errors()
        assert not errors, "\n".join(errors)
        return [
            torch.load(self.folder / f"result_{rank}.pt", weights_only=True)
            for rank in range(len(self.processes))
        ]

    def errors(self) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.glob("error_*.txt"))]

    def output(self, rank: int) -> str:
        """What a process has written to standard output and error; nothing, before it has come so far."""
        path = self.folder / f"output_{rank}.txt"
        return path.read_text() if path.exists() else ""


def run_job(count: int, function: Callable[..., Any], folder: Path, **options: Any) -> list[Any]:
    """What each of the processes returned."""
    return Job(count, function, folder, **options).results()


def _child(
    rank: int,
    count: int,
    port: int,
    function: Callable[..., Any],
    folder: Path,
    options: dict[str, Any],
) -> None:
    output = os.open(folder / f"output_{rank}.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    torch.set_num_threads(1)
    if count > 1:
        os.environ.update(
            RANK=str(rank),
            WORLD_SIZE=str(count),
            LOCAL_RANK=str(rank),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )
    try:
        torch.save(function(folder=folder, **options), folder / f"result_{rank}.pt")
    except BaseException:
        (folder / f"error_{rank}.txt").write_text(traceback.format_exc())
        os._exit(1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
