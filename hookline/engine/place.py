"""Where a run is just now, read from the stack of the thread that trains."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import TYPE_CHECKING

from hookline.dist.watch import Place, Watch
from hookline.engine.hook import BaseHook
from hookline.engine.sites import PER_ITERATION

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

# Files from which a process waits for the others, if it is there that it has left Python: collectives, the backward pass, where
# gradients are exchanged, and DDP's forward, which hands buffers over. A model's own layers below DDP are work, and no waiting.
WAITING = tuple(os.path.join("torch", *parts) for parts in (("distributed", ""), ("autograd", "graph"), ("nn", "parallel", "")))
THROUGH = os.path.join("torch", "_ops.py")  # the way into operators, collectives among them
ENGINE = os.path.dirname(__file__) + os.sep
# What is under way where no hook is, by files that are on the stack.
PHASES = {
    os.path.join("torch", "utils", "data", ""): "data loader",
    os.path.join("hookline", "data", ""): "data loader",
    os.path.join("torch", "nn", "modules", "module.py"): "forward",
    os.path.join("torch", "nn", "parallel", ""): "forward",
}
# Functions of the engine that are at work before the first iteration and between two.
BETWEEN = {"_load", "_begin_epoch", "_end_epoch", "settle_before_training", "settle", "go_back", "validate", "evaluate", "finish_resume"}


def start_watch(runner: BaseRunner) -> Watch | None:
    """Watch the other processes of a run, and be watched; None where there are none."""
    if runner.world.size == 1 or "MASTER_ADDR" not in os.environ:
        return None
    return Watch(runner.world, where(runner, threading.get_ident()), runner.parallel.strategy.timeout)


def where(runner: BaseRunner, thread: int) -> Callable[[BaseException | None], Place]:
    """A function that says, for any thread, where the run is that goes on in one, or where an error was raised in it."""

    def place(error: BaseException | None = None) -> Place:
        frames = list(_stack(sys._current_frames().get(thread)) if error is None else _raised(error))
        inner = next((frame.f_code.co_filename for frame, _ in frames if not frame.f_code.co_filename.endswith(THROUGH)), "")
        progress = [runner.iter, runner.epoch, runner.batch_idx, runner.optimizer_steps]
        sites = [site for frame, _ in frames if (site := _hook_at(frame, runner).rpartition(" at ")[2])]
        mode = getattr(runner, "mode", "train")  # runners of other frameworks' kind have none
        when = (moment(runner, sites, frames) or "before the first iteration") if mode == "train" else mode
        return Place(progress, f"{when}{_doing(frames, runner)}", any(part in inner for part in WAITING), _lines(frames, runner))

    return place


Frames = list[tuple[FrameType, int]]  # each with its line, the innermost first


def _stack(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno or 0
        frame = frame.f_back


def _raised(error: BaseException) -> Frames:
    return list(traceback.walk_tb(error.__traceback__))[::-1]


def moment(runner: BaseRunner, sites: Collection[str], frames: Frames) -> str:
    """The iteration that is under way, or the last one; nothing before the first. `sites` are those whose hooks are at work."""
    if sites:
        under_way = any(site in PER_ITERATION or site == "optimize" for site in sites)
    else:
        calls = {frame.f_code.co_name for frame, _ in frames if frame.f_code.co_filename.startswith(ENGINE)}
        under_way = (getattr(runner, "batch", None) is not None or "training_batches" in calls) and not calls & BETWEEN
    if under_way:
        return f"epoch {runner.epoch + 1}, iteration {runner.iter + 1}"
    epoch = f"epoch {runner.epoch + 1}, " if runner.inner_iter else ""  # between two epochs it is the next one's number
    return f"{epoch}after iteration {runner.iter}" if runner.iter else ""


def _doing(frames: Frames, runner: BaseRunner) -> str:
    """The innermost hook and its site, for one hook may call others; else what the loop does; else nothing."""
    phase = ""
    for frame, _ in frames:
        hook = _hook_at(frame, runner)
        if hook:
            return f", {hook}"
        phase = next((f", {name}" for part, name in PHASES.items() if part in frame.f_code.co_filename), phase)
    return phase


def _lines(frames: Frames, runner: BaseRunner) -> str:
    """The lines from where it is up to the hook, or the part of the loop, that it belongs to: what tells two collectives apart."""
    lines = []
    for frame, line in frames:
        lines.append(f"{os.path.basename(frame.f_code.co_filename)}:{line}")
        if frame.f_code.co_filename.startswith(ENGINE) or _hook_at(frame, runner):
            break
    return " ".join(lines)


def _hook_at(frame: FrameType, runner: BaseRunner) -> str:
    name, plan = frame.f_code.co_name, runner.sites.plan
    if name not in plan and not any(name in hook.site_aliases for hook in runner.hooks):
        return ""  # before its variables are asked for: who does that keeps them, large tensors too, until the frame is left
    owner = frame.f_locals.get("self")
    if not isinstance(owner, BaseHook):
        return ""
    site = owner.site_aliases.get(name, name)
    return f"{owner.name} at {site}" if site in plan else ""
