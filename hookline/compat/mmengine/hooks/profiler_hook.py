"""Profile some epochs or iterations."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class ProfilerHook(Hook):
    """Profiles the beginning of a run with torch.profiler.

    Args:
        by_epoch: Whether `profile_times` counts epochs; otherwise it counts iterations.
        profile_times: The number of epochs or iterations to profile.
        activity_with_cpu: Profile the CPU.
        activity_with_cuda: Profile the GPU.
        schedule: Arguments of `torch.profiler.schedule`.
        on_trace_ready: A function of the profiler, or a dict with the type `log_trace` or
            `tb_trace` and further arguments.
        json_trace_path: A file for the trace in Chrome's format.
    """

    priority = "VERY_LOW"
    engine_sites = ("cleanup",)

    def __init__(
        self,
        *,
        by_epoch: bool = True,
        profile_times: int = 1,
        activity_with_cpu: bool = True,
        activity_with_cuda: bool = False,
        schedule: dict[str, int] | None = None,
        on_trace_ready: Callable[..., Any] | dict[str, Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        json_trace_path: str | None = None,
    ) -> None:
        if not isinstance(by_epoch, bool):
            raise ValueError(f"by_epoch must be a bool, got {by_epoch}")
        if not isinstance(profile_times, int) or profile_times < 1:
            raise ValueError(
                f"profile_times must be a whole number of at least 1, got {profile_times}"
            )
        self.activities = []
        if activity_with_cpu:
            self.activities.append(torch.profiler.ProfilerActivity.CPU)
        if activity_with_cuda:
            self.activities.append(torch.profiler.ProfilerActivity.CUDA)
        self.by_epoch = by_epoch
        self.profile_times = profile_times
        self.json_trace_path = json_trace_path
        self.schedule = torch.profiler.schedule(**schedule) if schedule is not None else None
        self.on_trace_ready = on_trace_ready
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
        }
        self.profiler: Any = None

    def before_run(self, runner: Any) -> None:
        limit = runner.max_epochs if self.by_epoch else runner.max_iters
        if limit < self.profile_times:
            unit = "epochs" if self.by_epoch else "iters"
            raise ValueError(
                f"`profile_times` should not be greater than the {limit} {unit} of the run, "
                f"got {self.profile_times}"
            )
        ready = self._on_ready(runner)
        self.profiler = torch.profiler.profile(
            activities=self.activities,
            schedule=self.schedule,
            on_trace_ready=ready,
            **self._options,
        )
        self.profiler.__enter__()

    def after_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and runner.epoch == self.profile_times - 1:
            self._export_chrome_trace(runner)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        if self.profiler is None:
            return
        self.profiler.step()
        if not self.by_epoch and runner.iter == self.profile_times - 1:
            self._export_chrome_trace(runner)

    def cleanup(self, runner: Any) -> None:
        self._stop()

    def _on_ready(self, runner: Any) -> Any:
        given = self.on_trace_ready
        if not isinstance(given, dict):
            return given
        options = dict(given)
        kind = options.pop("type")
        if kind == "log_trace":
            return lambda profiler: runner.logger.info(profiler.key_averages().table(**options))
        if kind == "tb_trace":
            directory = options.pop("dir_name", os.path.join(runner.log_dir, "tf_tracing_logs"))
            return torch.profiler.tensorboard_trace_handler(directory, **options)
        raise ValueError(f'on_trace_ready: type is "log_trace" or "tb_trace", got {kind!r}')

    def _export_chrome_trace(self, runner: Any) -> None:
        runner.logger.info("profiler may take a few minutes...")
        profiler = self._stop()
        if self.json_trace_path is not None:
            profiler.export_chrome_trace(self.json_trace_path)

    def _stop(self) -> Any:
        """Stop the profiler, and return it."""
        profiler = self.profiler
        self.profiler = None
        if profiler is not None:
            profiler.__exit__(None, None, None)
        return profiler
