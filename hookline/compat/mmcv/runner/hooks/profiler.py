"""Profile some iterations or epochs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.errors import suggest

ACTIVITIES = {
    "cpu": torch.profiler.ProfilerActivity.CPU,
    "cuda": torch.profiler.ProfilerActivity.CUDA,
}
HANDLERS = ("log_trace", "tb_trace")


@HOOKS.register_module()
class ProfilerHook(Hook):
    """Profiles the beginning of a run with torch.profiler.

    Args:
        by_epoch: Whether `profile_iters` counts epochs; otherwise it counts iterations.
        profile_iters: The number of epochs or iterations to profile.
        activities: `cpu` and `cuda`, or one of them.
        schedule: Arguments of `torch.profiler.schedule`.
        on_trace_ready: A function of the profiler, or a dict with the type `log_trace` (a table in
            the log; `sort_by`, `row_limit`) or `tb_trace` (for TensorBoard; `dir_name`).
        json_trace_path: A file for the trace in Chrome's format.
    """

    reads_checkpoints = False

    def __init__(
        self,
        by_epoch: bool = True,
        profile_iters: int = 1,
        activities: Any = ("cpu", "cuda"),
        schedule: dict[str, int] | None = None,
        on_trace_ready: Callable[..., Any] | dict[str, Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        json_trace_path: str | None = None,
    ) -> None:
        if profile_iters < 1:
            raise ValueError(f"profile_iters should be greater than 0, but got {profile_iters}")
        if isinstance(on_trace_ready, dict) and on_trace_ready.get("type") not in HANDLERS:
            kind = on_trace_ready.get("type")
            raise ValueError(f"on_trace_ready should have type {HANDLERS}, but got {kind!r}")
        self.activities = _available(activities)
        self.by_epoch = by_epoch
        self.profile_iters = profile_iters
        self.on_trace_ready = on_trace_ready
        self.json_trace_path = json_trace_path
        self.schedule = None if schedule is None else torch.profiler.schedule(**schedule)
        self.options: Any = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
        }
        self.profiler: Any = None

    def before_run(self, runner: Any) -> None:
        length = runner.max_epochs if self.by_epoch else runner.max_iters
        if length < self.profile_iters:
            raise ValueError(
                f"self.profile_iters should not be greater than {length}, the length of the run, "
                f"but got {self.profile_iters}"
            )
        self.profiler = torch.profiler.profile(
            activities=self.activities,
            schedule=self.schedule,
            on_trace_ready=self._handler(runner),
            **self.options,
        )
        self.profiler.__enter__()

    def after_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and runner.epoch == self.profile_iters - 1:
            self._stop(runner)

    def after_train_iter(self, runner: Any) -> None:
        if self.profiler is not None:
            self.profiler.step()
            if not self.by_epoch and runner.iter == self.profile_iters - 1:
                self._stop(runner)

    def cleanup(self, runner: Any) -> None:
        self._stop(runner)

    def _stop(self, runner: Any) -> None:
        profiler = self.profiler
        if profiler is None:
            return
        self.profiler = None
        profiler.__exit__(None, None, None)
        if self.json_trace_path is not None:
            profiler.export_chrome_trace(self.json_trace_path)

    def _handler(self, runner: Any) -> Callable[..., Any] | None:
        if not isinstance(self.on_trace_ready, dict):
            return self.on_trace_ready
        options = dict(self.on_trace_ready)
        if options.pop("type") == "tb_trace":
            if not options.get("dir_name"):
                options["dir_name"] = str(Path(runner.work_dir) / "tf_tracing_logs")
            handler: Callable[..., Any] = torch.profiler.tensorboard_trace_handler(**options)
            return handler
        row_limit = options.pop("row_limit", 100)

        def log_table(profiler: Any) -> None:
            table = profiler.key_averages().table(row_limit=row_limit, **options)
            runner.logger.info("\n%s", table)

        return log_table


def _available(activities: Any) -> list[Any]:
    """Return the activities that this machine can profile; raise ValueError for unknown names."""
    available = []
    for name in activities:
        if name not in ACTIVITIES:
            hint = suggest(str(name), ACTIVITIES)
            raise ValueError(f"activity should be 'cpu' or 'cuda', but got {name!r}{hint}")
        if name != "cuda" or torch.cuda.is_available():
            available.append(ACTIVITIES[name])
    return available
