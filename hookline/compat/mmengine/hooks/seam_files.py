"""The requests of MMEngine's CheckpointHook, with and without MMEngine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class FilesAtSeams:
    """A hook that requests files. The runner writes them when all hooks of the stage have run."""

    def _save_checkpoint(self: Any, runner: Any) -> None:
        """Request a checkpoint of this epoch or iteration."""
        stage = "after_train_iter"
        step = runner.iter + 1
        meta = {"epoch": runner.epoch, "iter": step}
        if self.by_epoch:
            stage = "after_train_epoch"
            step = runner.epoch + 1
            meta = {"epoch": step, "iter": runner.iter, "inner_iter": 0}
        if runner.has_hooks_after(self, stage) and not runner.loop.accumulating:
            # Those hooks find it; the seam replaces it.
            self._save_checkpoint_with_step(runner, step, meta)
        runner.request_write(
            lambda: self._save_checkpoint_with_step(runner, step, runner.position_after())
        )

    def _make_write(self: Any, name: str) -> Callable[[], None]:
        """Return a function that writes a checkpoint for a signal or another hook."""

        def write() -> None:
            meta = self.runner.position_after()
            in_epoch = self.by_epoch and meta["inner_iter"]
            if name == "last" and not in_epoch:
                step = meta["epoch" if self.by_epoch else "iter"]
                self._save_checkpoint_with_step(self.runner, step, meta)
            elif name == "last":
                self._write(self.runner, f"iter_{meta['iter']}.pth", meta)
            else:
                self._write(self.runner, f"{name}.pth", meta)

        return write
