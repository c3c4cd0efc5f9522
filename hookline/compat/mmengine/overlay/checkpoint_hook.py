"""MMEngine's CheckpointHook, whose files hold the state after all hooks of the stage.

It requests files, and the runner writes them at the seam that follows. A file is deleted only
after the one that replaces it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import original_checkpoint_hook as original
from mmengine.registry import HOOKS

from hookline.compat.mmengine.hooks.seam_files import FilesAtSeams
from hookline.files import replace_file


@HOOKS.register_module(force=True)
class CheckpointHook(FilesAtSeams, original.CheckpointHook):  # type: ignore[misc]
    """Save checkpoints at intervals, delete old ones, and keep the best ones."""

    file_backend: Any
    last_ckpt: Any

    def before_train(self, runner: Any) -> None:
        super().before_train(runner)
        if _has_seams(runner):
            runner.checkpointer.enable(self._make_write)

    def _save_checkpoint(self, runner: Any) -> None:
        if _has_seams(runner):
            FilesAtSeams._save_checkpoint(self, runner)
        else:
            original.CheckpointHook._save_checkpoint(self, runner)

    def _save_best_checkpoint(self, runner: Any, metrics: Mapping[str, Any]) -> None:
        save = super()._save_best_checkpoint
        if not _has_seams(runner):
            save(runner, metrics)
        elif self.save_best:
            runner.request_write(lambda: self._save_and_then_remove(save, runner, metrics))

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict[str, Any]) -> None:
        save = super()._save_checkpoint_with_step
        self._save_and_then_remove(save, runner, step, meta)

    def _save_and_then_remove(self, save: Callable[..., None], *arguments: Any) -> None:
        """Save, and remove the former files after that: MMEngine removes them first."""
        backend = self.file_backend
        self.file_backend = LateRemoval(backend)
        try:
            save(*arguments)
            former = self.file_backend.removed
        finally:
            self.file_backend = backend
        best = getattr(self, "best_ckpt_path_dict", {"": getattr(self, "best_ckpt_path", None)})
        kept = {self.last_ckpt, *best.values()}
        for path, remove in former.items():
            if path not in kept:
                remove(path)

    def _write(self, runner: Any, file: str, meta: dict[str, Any]) -> None:
        self.last_ckpt = self.file_backend.join_path(self.out_dir, file)
        runner.message_hub.update_info("last_ckpt", self.last_ckpt)
        runner.save_checkpoint(
            self.out_dir, file, self.file_client_args, meta=meta, backend_args=self.backend_args
        )
        if is_main_process():
            replace_file(Path(runner.work_dir, "last_checkpoint"), self.last_ckpt)


class LateRemoval:
    """A file backend that notes what to remove.

    Attributes:
        removed: The paths, each with the function that removes it.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.removed: dict[str, Callable[[str], None]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def remove(self, path: str) -> None:
        self.removed[path] = self._backend.remove

    def rmtree(self, path: str) -> None:
        self.removed[path] = self._backend.rmtree


def _has_seams(runner: Any) -> bool:
    """Return whether a runner is running, so that it writes requested files at the next seam."""
    return getattr(type(runner), "has_seams", False) is True and runner.loop.is_running
