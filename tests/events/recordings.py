"""Random recordings in random runs, for the rule that every value arrives once, at its step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import nn

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook
from tests.helpers import batches, make_runner

IN_ITERATION = ("before_train_iter", "after_forward", "after_optimizer_step", "after_train_iter")
AROUND_EPOCH = ("before_epoch", "before_train_epoch", "after_train_epoch", "after_epoch")
NAMES = ("rare", "group/deep", "lively")

Found = list[tuple[str, int, float]]


@dataclass(frozen=True)
class Recording:
    """A value, and where it is recorded: in an iteration, or around the epoch that has it."""

    site: str
    iteration: int
    name: str
    global_step: int | None
    as_tensor: bool


@dataclass(frozen=True)
class Plan:
    """A run with its recordings and its interruptions.

    `ends` are the iterations at which the run is interrupted; `crashes` says how.
    """

    recordings: Sequence[Recording]
    epochs: int
    epoch_length: int
    interval: int
    save_every: int
    ends: Sequence[int]
    crashes: bool
    priority: int
    order: str

    def expected(self) -> Found:
        """Return names, steps and values of all recordings."""
        found = []
        for index, recording in enumerate(self.recordings):
            step = self._step(recording) if recording.global_step is None else recording.global_step
            found.append((recording.name, step, value_of(index)))
        return sorted(found)

    def _step(self, recording: Recording) -> int:
        epoch = (recording.iteration - 1) // self.epoch_length
        if recording.site in ("before_epoch", "before_train_epoch"):
            return epoch * self.epoch_length + 1
        if recording.site in AROUND_EPOCH:
            return (epoch + 1) * self.epoch_length
        return recording.iteration

    def length(self) -> int:
        return self.epochs * self.epoch_length


def value_of(index: int) -> float:
    return index + 0.25


@st.composite
def plans(draw: Any) -> Plan:
    """Draw a plan."""
    epochs, epoch_length = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    iterations = st.integers(1, epochs * epoch_length)
    steps = st.none() | st.integers(0, 40)  # earlier and later than where the run resumes
    sites = st.sampled_from(IN_ITERATION + AROUND_EPOCH)
    recording = st.builds(
        Recording, sites, iterations, st.sampled_from(NAMES), steps, st.booleans()
    )
    return Plan(
        recordings=draw(st.lists(recording, max_size=12)),
        epochs=epochs,
        epoch_length=epoch_length,
        interval=draw(st.integers(1, 7)),
        save_every=draw(st.integers(1, 4)),
        ends=sorted(draw(st.sets(iterations, max_size=2))),
        crashes=draw(st.booleans()),
        priority=draw(st.sampled_from([0, 50, 100])),
        order=draw(st.sampled_from(["nested", "flat"])),
    )


@dataclass
class Recorder(BaseHook):
    """Records the values of a plan."""

    plan: Plan = field(default=None)  # type: ignore[assignment]

    def put(self, site: str, runner: Any) -> None:
        now = runner.iter + 1
        for index, recording in enumerate(self.plan.recordings):
            if recording.site != site or not self._is_due(recording, now, runner.epoch):
                continue
            if site in ("before_epoch", "before_train_epoch") and runner.inner_iter:
                continue  # resumed inside the epoch, whose beginning was recorded
            value: Any = value_of(index)
            if recording.as_tensor:
                value = torch.nn.Parameter(torch.tensor(value))  # It waits as on a device.
            runner.events.put_scalar(recording.name, value, global_step=recording.global_step)

    def _is_due(self, recording: Recording, now: int, epoch: int) -> bool:
        if recording.site in AROUND_EPOCH:
            return (recording.iteration - 1) // self.plan.epoch_length == epoch
        return recording.iteration == now


for _site in IN_ITERATION + AROUND_EPOCH:
    setattr(Recorder, _site, lambda self, runner, site=_site: self.put(site, runner))


class Interrupt(BaseHook):
    """Ends the run after an iteration, with a checkpoint or with a crash."""

    def __init__(self, iteration: int, crash: bool) -> None:
        self.iteration = iteration
        self.crash = crash

    def before_train_iter(self, runner: Any) -> None:
        if self.crash and runner.iter == self.iteration:
            raise RuntimeError("crash")

    def after_train_iter(self, runner: Any) -> None:
        if not self.crash and runner.iter + 1 == self.iteration:
            runner.request_save("last", collective=True)
            runner.request_stop("interrupted", collective=True)


def carry_out(plan: Plan, folder: Path, *hooks: Any) -> None:
    """Train with fresh copies of hooks, interrupt, and resume until the run is complete."""
    for end in [*plan.ends, None]:
        parts: list[Any] = [dict(hook) for hook in hooks]
        parts.append(Recorder(plan=plan, priority=plan.priority))
        parts.append(CheckpointHook(by_epoch=False, interval=plan.save_every, save_best=False))
        if end is not None:
            parts.append(Interrupt(end, plan.crashes))
        runner = make_runner(
            folder,
            *parts,
            model=nn.Linear(6, 3),
            train_loader=batches(plan.epoch_length),
            max_epochs=plan.epochs,
            hook_order=plan.order,
            resume="auto",
        )
        try:
            runner.train()
        except RuntimeError as error:
            if str(error) != "crash":
                raise
