"""Who keeps the others waiting: every process tells where it is, and looks at the others, beside the training.

Nothing here takes part in a collective, and nothing is recorded on the hot path: where a process is, is read from its stack.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from typing import Any, NamedTuple

import torch.distributed as dist

from hookline.dist.launch import MEETING
from hookline.dist.world import World

log = logging.getLogger("hookline")

BEAT = 1.0  # seconds between two looks
SILENT = 5.0  # seconds after which a process that tells nothing is taken for stopped or gone


class Place(NamedTuple):
    """Where a process is."""

    progress: list[int]  # something that changes as long as it gets on
    text: str  # `iteration 12, OptimizerHook at optimize`
    waiting: bool  # whether it is in a collective, where it may wait for others


class Seen(NamedTuple):
    """What is known of a process, and since when."""

    beat: int
    place: Place
    heard: float
    moved: float


class Watch:
    """Tells the others where this process is, once a second, and ends it with a message when one of them keeps it waiting."""

    def __init__(self, world: World, where: Callable[[], Place], timeout: float) -> None:
        self._world, self._where, self._timeout = world, where, timeout
        self._patience = min(SILENT, timeout / 2)
        self._store = dist.TCPStore(  # type: ignore[attr-defined]
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False
        )
        self._prefix = f"hookline/{os.environ.get(MEETING, '')}"
        self._seen: dict[int, Seen] = {}
        self._beats = 0
        self._stopped = threading.Event()
        self._beat()
        world.barrier()  # so that everyone has told something when the first one looks
        self._thread = threading.Thread(target=self._run, name="hookline-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(2 * BEAT)
        self._set(self._world.rank, {"beat": -1})  # gone, and all is well

    def tell_failure(self, error: BaseException) -> None:
        """Let the others know that this process ends with an error; the first one to say so is the cause."""
        text = f"process {self._world.rank} failed: {type(error).__name__}: {error}"
        self._store.compare_set(f"{self._prefix}/failed", "", text[:2000])

    def cause_elsewhere(self, error: BaseException) -> str | None:
        """What happened to another process, if this one's error only follows from that; None if it is its own."""
        deadline = time.monotonic() + (self._patience + 2 * BEAT if _in_collective(error) else 0.0)
        while True:
            failed = self._failure()
            if failed is not None and not failed.startswith(f"process {self._world.rank} "):
                return failed
            silent = self._silent() if time.monotonic() > deadline - 2 * BEAT else []
            if silent:
                return f"{_processes(silent)} answered no more: killed, stopped, or its machine is gone"
            if failed is not None or time.monotonic() >= deadline:
                return None
            time.sleep(BEAT / 4)

    def _run(self) -> None:
        moved, progress, executor = time.monotonic(), self._where().progress, ThreadPoolExecutor(1, "hookline-watch-round")
        while not self._stopped.wait(min(BEAT, self._timeout / 4)):
            here = self._where()
            if here.progress != progress:
                moved, progress = time.monotonic(), here.progress
            try:
                executor.submit(self._round).result(self._patience)
            except TimeoutError:  # where the processes meet; without torchrun that is the main one
                if here.waiting and time.monotonic() - moved > self._timeout:
                    self._end(f"the main process answered no more; nothing moved for {self._timeout:.0f} s. Here: {here.text}", None)
            except (RuntimeError, OSError):  # the store is gone, and the job with it
                return

    def _round(self) -> None:
        self._beat()
        self._look()
        self._judge()

    def _beat(self) -> None:
        self._beats += 1
        self._set(self._world.rank, {"beat": self._beats, "place": self._where()})

    def _look(self) -> None:
        now = time.monotonic()
        for rank in range(self._world.size):
            told = json.loads(self._store.get(f"{self._prefix}/{rank}"))
            if told["beat"] < 0:
                self._seen.pop(rank, None)
                continue
            place, before = Place(*told["place"]), self._seen.get(rank)
            heard = now if before is None or told["beat"] != before.beat else before.heard
            moved = now if before is None or place.progress != before.place.progress else before.moved
            self._seen[rank] = Seen(told["beat"], place, heard, moved)

    def _judge(self) -> None:
        """End this process if it, or another, has been waiting for too long."""
        now = time.monotonic()
        failed = self._failure()
        if failed is not None and not failed.startswith(f"process {self._world.rank} "):
            self._stopped.wait(self._patience)  # the main thread will most likely notice by itself
            if not self._stopped.is_set():
                self._end(f"{failed}; this process ends too", None)
        waiting = [rank for rank, seen in self._known() if seen.place.waiting and now - seen.moved > self._timeout]
        if waiting:
            self._end(*self._verdict(waiting))

    def _verdict(self, waiting: list[int]) -> tuple[str, list[int]]:
        """Whom the others wait for, in words and by rank."""
        silent = self._silent()
        busy = [rank for rank, seen in self._known() if not seen.place.waiting and rank not in silent]
        guilty = silent or busy or [rank for rank, _ in self._known()]
        places = "; ".join(f"process {rank}: {seen.place.text}" for rank, seen in self._known())
        seconds = f"{self._timeout:.0f} s"
        if silent:
            verdict = f"{_processes(silent)} answered no more (stopped, or its machine is gone)"
        elif busy:
            verdict = f"{_processes(busy)} did not come to where the others wait"
        else:
            verdict = "the processes wait for each other at different places"
        return f"{verdict}; nothing moved for {seconds}. Where they are: {places}", guilty

    def _known(self) -> list[tuple[int, Seen]]:
        """What is known by rank; a copy, for the main thread looks too when it fails."""
        return sorted(self._seen.copy().items())

    def _silent(self) -> list[int]:
        self._look()
        now = time.monotonic()
        return [rank for rank, seen in self._known() if rank != self._world.rank and now - seen.heard > self._patience]

    def _end(self, text: str, guilty: list[int] | None) -> None:
        """Out of here, at once: the main thread may never come back."""
        log.error("%s", text)
        silent = self._silent()
        spokesman = min((rank for rank, _ in self._known() if rank not in silent), default=0)
        if self._world.rank == spokesman or guilty is None:
            print(f"hookline: {text}", file=sys.stderr)
        if guilty is not None and self._world.rank in guilty:
            faulthandler.dump_traceback()
        for handler in log.handlers:
            handler.flush()
        sys.stderr.flush()
        time.sleep(2 * BEAT)  # so that the others come to the same verdict before their turn
        os._exit(1)

    def _failure(self) -> str | None:
        key = f"{self._prefix}/failed"
        return self._store.get(key).decode() if self._store.check([key]) else None

    def _set(self, rank: int, content: dict[str, Any]) -> None:
        self._store.set(f"{self._prefix}/{rank}", json.dumps(content))


def _in_collective(error: BaseException) -> bool:
    """Whether an error came out of torch.distributed, or of a backward pass, which is where gradients are exchanged."""
    trace, inner = error.__traceback__, ""
    while trace is not None:
        inner, trace = trace.tb_frame.f_code.co_filename, trace.tb_next
    return f"torch{os.sep}distributed" in inner or f"torch{os.sep}autograd" in inner


def _processes(ranks: list[int]) -> str:
    return f"process {ranks[0]}" if len(ranks) == 1 else f"processes {', '.join(map(str, ranks))}"
