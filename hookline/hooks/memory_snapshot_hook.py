"""Write torch's memory snapshots when GPU memory runs out or reaches a new peak."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import require_at_least

GROWTH = 1.05  # A peak is new if it exceeds the last one by 5%.


@HOOKS.register()
@dataclass
class MemorySnapshotHook(BaseHook):
    """Write snapshots of the GPU's memory at new peaks, and when it runs out.

    `memory_peak_rank0.pickle` and `memory_oom_rank0.pickle` in the work directory hold the recorded
    allocations with their stacks, for https://pytorch.org/memory_viz. Without a GPU the hook only
    warns.

    Args:
        interval: Number of iterations between two looks at the peak.
        max_entries: Number of recorded allocations. Older ones are dropped.

    Example:
        ```yaml
        hooks:
          - {type: MemorySnapshotHook, interval: 100}
        ```
    """

    interval: int = 50
    max_entries: int = 100_000

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval", "max_entries")
        self._is_recording = False

    def before_train(self, runner: BaseRunner) -> None:
        if runner.device.type != "cuda":
            runner.logger.warning("%s: there is no GPU whose memory it could record", self.name)
            return
        torch.cuda.memory._record_memory_history(max_entries=self.max_entries)  # noqa: SLF001, documented
        self._is_recording = True
        self._peak = 0.0
        self._failures = 0

    def after_train_iter(self, runner: BaseRunner) -> None:
        if not self._is_recording or not self.every_n_iters(runner, self.interval):
            return
        statistics = torch.cuda.memory_stats(runner.device)
        if statistics["num_ooms"] > self._failures:  # MicroBatchHook has recovered from it.
            self._failures = statistics["num_ooms"]
            self._write(runner, "oom")
        if statistics["allocated_bytes.all.peak"] > GROWTH * self._peak:
            self._peak = statistics["allocated_bytes.all.peak"]
            self._write(runner, "peak")

    def on_exception(self, runner: BaseRunner) -> None:
        if self._is_recording and isinstance(runner.exception, torch.OutOfMemoryError):
            self._write(runner, "oom")

    def cleanup(self, runner: BaseRunner) -> None:
        if self._is_recording:
            torch.cuda.memory._record_memory_history(enabled=None)  # noqa: SLF001
            self._is_recording = False

    def _write(self, runner: BaseRunner, event: str) -> None:
        path = runner.work_dir / f"memory_{event}_rank{runner.world.rank}.pickle"
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.cuda.memory._dump_snapshot(str(path))  # type: ignore[no-untyped-call]  # noqa: SLF001
