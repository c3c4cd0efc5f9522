"""Profile iterations with torch.profiler and summarize the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerAction

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import NO_VALUE, parameter_error, require_at_least, suggest
from hookline.hooks.bases.reexports import reexport_hooks
from hookline.profiling.counting import FlopCount
from hookline.profiling.profile_files import write_tables, write_traces
from hookline.profiling.profile_summary import PhaseTimes, describe_phases
from hookline.profiling.ranges import Ranges

RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
MIN_SCHEDULE = {"wait": 0, "warmup": 0, "active": 1, "repeat": 0}

__getattr__ = reexport_hooks(__name__, "MemoryProfilerHook", "IterTimerHook")


@HOOKS.register()
@dataclass
class ProfilerHook(BaseHook):
    """Profile the first iterations with `torch.profiler`, with the names of phases and hooks.

    Each cycle writes to `profile/` in the work directory: traces for Chrome and TensorBoard, a
    table of operators, and a summary in words, which is also logged.

    Args:
        by_epoch: Count `profile_iters` in epochs.
        profile_iters: Number of iterations to profile.
        schedule: `{wait, warmup, active, repeat}` in iterations. By default, waiting and warm-up
            take up to a tenth each, and profiling takes the rest.
        on_trace_ready: Function to call with the torch profiler after each cycle.
        record_shapes: Record the shapes of operator inputs.
        profile_memory: Record the memory that operators allocate.
        with_stack: Record the source lines that call operators. Slow.
        with_flops: Count floating-point operations.
        export_chrome_trace: Write a trace for Chrome.
        export_tensorboard: Write a trace for TensorBoard.

    Example:
        ```yaml
        hooks:
          - {type: ProfilerHook, profile_iters: 40, with_stack: true}
        ```
    """

    by_epoch: bool = False
    profile_iters: int = 100
    schedule: dict[str, int] | None = None
    on_trace_ready: Callable[[Any], Any] | None = None
    record_shapes: bool = True
    profile_memory: bool = True
    with_stack: bool = False
    with_flops: bool = True
    export_chrome_trace: bool = True
    export_tensorboard: bool = True

    priority = Priority.LOWEST  # Innermost: counts only operations of the forward pass.
    ranks = "main"
    needs_after_backward = False

    def __post_init__(self) -> None:
        require_at_least(self, 1, "profile_iters")
        if self.on_trace_ready is not None and not callable(self.on_trace_ready):
            raise parameter_error(self, "on_trace_ready", "must be a function of the profiler")
        self._schedule = self._complete_schedule()
        self._profiler: Any = None
        self._cycles = 0
        self._flops: FlopCount | None = None

    def before_train(self, runner: BaseRunner) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if runner.device.type == "cuda":
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profiler = torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(**self._schedule),
            on_trace_ready=self._ready,
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            # Otherwise the stacks are only in the trace, and not in the table.
            experimental_config=_ExperimentalConfig(verbose=True) if self.with_stack else None,
        )
        self._first = runner.iter
        self._first_epoch = runner.epoch
        self._cycles = 0
        self._flops = None
        self._ranges = Ranges(self._before_iteration)
        self._profiler.start()
        self._update_recording()
        runner.sites.costs.add_observer(self._ranges)

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self.with_flops and self._flops is None and self._profiler is not None:
            # Count in the first iteration, which is rarely part of the profile.
            self._flops = FlopCount()
            self._flops.start()

    def after_backward(self, runner: BaseRunner) -> None:
        if self._flops is not None:
            self._flops.stop()

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.after_backward(runner)  # for models that run their own backward pass

    def after_train(self, runner: BaseRunner) -> None:
        self._stop()
        if not self._cycles:
            begin = self._schedule["wait"] + self._schedule["warmup"]
            runner.logger.warning(
                "%s: training was over before the profile began, after %d iterations",
                self.name,
                begin,
            )

    def cleanup(self, runner: BaseRunner) -> None:
        self.after_backward(runner)
        self._stop()

    def _before_iteration(self, runner: BaseRunner) -> None:
        """Advance the profiler before each iteration."""
        if runner.iter == self._first:
            return
        began = perf_counter()
        self._advance(runner, runner.iter - self._first)
        # Writing a profile is slow and not part of an iteration.
        runner.sites.costs.excluded_seconds += perf_counter() - began

    def _advance(self, runner: BaseRunner, done: int) -> None:
        cycle = sum(self._schedule[name] for name in ("wait", "warmup", "active"))
        count = runner.epoch - self._first_epoch if self.by_epoch else done
        repeats = self._schedule["repeat"]
        if count >= self.profile_iters or (repeats and done >= cycle * repeats):
            self._stop()
        else:
            self._profiler.step()
            self._update_recording()

    def _update_recording(self) -> None:
        """Record ranges while the profiler records."""
        began = self._profiler.current_action in RECORDING and not self._ranges.recording
        self._ranges.recording = self._profiler.current_action in RECORDING
        if began:
            self._before = PhaseTimes.from_costs(self.runner.sites.costs)

    def _stop(self) -> None:
        if self._profiler is not None:
            profiler, self._profiler = self._profiler, None
            self._ranges.close()
            self.runner.sites.costs.remove_observer(self._ranges)
            profiler.stop()

    def _ready(self, profiler: Any) -> None:
        """Write the files and the summary of a complete cycle."""
        runner = self.runner
        folder = runner.work_dir / "profile"
        self._cycles += 1
        self._ranges.recording = False
        folder.mkdir(parents=True, exist_ok=True)
        write_traces(
            profiler, folder, self._cycles, self.export_chrome_trace, self.export_tensorboard
        )
        flops = 0 if self._flops is None else self._flops.flops
        times = PhaseTimes.from_costs(runner.sites.costs).since(self._before)
        words = describe_phases(times, flops)
        summary = write_tables(
            profiler, folder, self._cycles, words, runner.device.type == "cuda", self.with_stack
        )
        runner.logger.info("%s: %s", self.name, summary)
        if self.on_trace_ready is not None:
            self.on_trace_ready(profiler)

    def _complete_schedule(self) -> dict[str, int]:
        """Return the schedule with all its parts, checked."""
        given = self.schedule or self._default_schedule()
        for name, value in given.items():
            self._check_part(name, value)
        schedule = {**MIN_SCHEDULE, **given}
        begin = schedule["wait"] + schedule["warmup"]
        if not self.by_epoch and begin >= self.profile_iters:
            expected = f"must exceed wait + warmup of the schedule, {begin}"
            raise parameter_error(self, "profile_iters", expected)
        return schedule

    def _default_schedule(self) -> dict[str, int]:
        tenth = min(10, self.profile_iters // 10)
        active = 80 if self.by_epoch else self.profile_iters - 2 * tenth
        return {"wait": tenth, "warmup": tenth, "active": active}

    def _check_part(self, name: str, value: Any) -> None:
        if name not in MIN_SCHEDULE:
            suggestion = suggest(name, MIN_SCHEDULE)
            raise parameter_error(
                self, "schedule", f"has no {name!r}", value=NO_VALUE, suggestion=suggestion
            )
        if not isinstance(value, int) or value < MIN_SCHEDULE[name]:
            expected = f"needs a whole number of at least {MIN_SCHEDULE[name]} as {name!r}"
            raise parameter_error(self, "schedule", expected, value=value)
