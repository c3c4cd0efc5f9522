"""Where a run is just now, read from the stack of the thread that trains."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hookline.dist.watch import Place, Watch
from hookline.engine.hook import BaseHook

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

# Files in which a process waits for the others: collectives, and the backward pass, where gradients are exchanged.
WAITING = (f"torch{os.sep}distributed{os.sep}", f"torch{os.sep}autograd{os.sep}graph")


def start_watch(runner: BaseRunner) -> Watch | None:
    """Watch the other processes of a run, and be watched; None where there are none."""
    if runner.world.size == 1 or "MASTER_ADDR" not in os.environ:
        return None
    return Watch(runner.world, here(runner, threading.get_ident()), runner.parallel.strategy.timeout)


def here(runner: BaseRunner, thread: int) -> Callable[[], Place]:
    """A function that says where the run is, for another thread."""

    def place() -> Place:
        frame: Any = sys._current_frames().get(thread)
        waiting, inside = False, ""
        while frame is not None:
            waiting = waiting or any(part in frame.f_code.co_filename for part in WAITING)
            owner, name = frame.f_locals.get("self"), frame.f_code.co_name
            if isinstance(owner, BaseHook) and owner.site_aliases.get(name, name) in runner.sites.plan:
                inside = f", {owner.name} at {owner.site_aliases.get(name, name)}"
            frame = frame.f_back
        progress = [runner.iter, runner.epoch, runner.batch_idx, runner.optimizer_steps]
        return Place(progress, f"epoch {runner.epoch + 1}, iteration {runner.iter + 1}{inside}", waiting)

    return place
