"""When to save, and what to keep; the runner writes at the next seam, when all hooks have run."""

from __future__ import annotations

import os.path as osp
from collections.abc import Callable
from typing import Any

from hookline.compat.mmcv.runner.dist_utils import allreduce_params, master_only
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class CheckpointHook(Hook):
    """Save every `interval` epochs (or iterations), and the last with `save_last`; keep the newest `max_keep_ckpts` (-1: all).

    Files go to `out_dir/<name of the work directory>`, or to the work directory itself. What is saved is the state between
    two iterations, whatever the priorities are. Further arguments go to `runner.save_checkpoint`.
    """

    ranks = "collective"

    def __init__(
        self,
        interval: int = -1,
        by_epoch: bool = True,
        save_optimizer: bool = True,
        out_dir: str | None = None,
        max_keep_ckpts: int = -1,
        save_last: bool = True,
        sync_buffer: bool = False,
        file_client_args: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if file_client_args and file_client_args.get("backend") not in (None, "disk"):
            raise ValueError(f"CheckpointHook: only files on a disk are covered, got file_client_args={file_client_args}")
        self.interval, self.by_epoch, self.save_optimizer, self.out_dir = interval, by_epoch, save_optimizer, out_dir
        self.max_keep_ckpts, self.save_last, self.sync_buffer, self.args = max_keep_ckpts, save_last, sync_buffer, kwargs

    def before_run(self, runner: Any) -> None:
        self.out_dir = directory_for(runner, self.out_dir, "CheckpointHook")
        runner.saver = self._on_demand

    def after_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and (self.every_n_epochs(runner, self.interval) or (self.save_last and self.is_last_epoch(runner))):
            runner.logger.info("Saving checkpoint at %d epochs", runner.epoch + 1)
            self._save(runner)

    def after_train_iter(self, runner: Any) -> None:
        if not self.by_epoch and (self.every_n_iters(runner, self.interval) or (self.save_last and self.is_last_iter(runner))):
            runner.logger.info("Saving checkpoint at %d iterations", runner.iter + 1)
            self._save(runner)

    def cleanup(self, runner: Any) -> None:
        runner.saver = None

    @master_only
    def _save_checkpoint(self, runner: Any) -> None:
        """For subclasses that call it: the state is saved here and now."""
        runner.save_checkpoint(self.out_dir, save_optimizer=self.save_optimizer, filename_tmpl=self._template, **self._rest)

    def _save(self, runner: Any) -> None:
        if self.sync_buffer:
            allreduce_params(runner.model.buffers())
        if type(self)._save_checkpoint is not CheckpointHook._save_checkpoint:
            self._save_checkpoint(runner)
            return
        number = runner.epoch + 1 if self.by_epoch else runner.iter + 1
        name = self._template.format(number)
        if runner.meta is not None:
            runner.meta.setdefault("hook_msgs", {})["last_ckpt"] = osp.join(str(self.out_dir), name)
        surplus: list[str] = []
        if self.max_keep_ckpts > 0 and self.interval > 0:
            surplus = [self._template.format(old) for old in range(number - self.max_keep_ckpts * self.interval, 0, -self.interval)]
        runner.saving.request(self.out_dir, name, self.save_optimizer, surplus=surplus, **self._rest)

    def _on_demand(self, name: str | None) -> Callable[[dict[str, Any]], None]:
        """A signal has asked for a checkpoint before the run ends."""
        runner = self.runner

        def write(checkpoint: dict[str, Any]) -> None:
            runner.saving.write(checkpoint, self.out_dir, [f"{name or f'iter_{runner.iter}'}.pth"], True)  # type: ignore[attr-defined]

        return write

    @property
    def _template(self) -> str:
        return str(self.args.get("filename_tmpl", "epoch_{}.pth" if self.by_epoch else "iter_{}.pth"))

    @property
    def _rest(self) -> dict[str, Any]:
        return {key: value for key, value in self.args.items() if key != "filename_tmpl"}


def directory_for(runner: Any, out_dir: str | None, who: str) -> str:
    """The work directory, or the one of its name in `out_dir`."""
    if runner.work_dir is None and not out_dir:
        raise ValueError(f"{who}: the runner has no work_dir to save in; give it one, or give the hook an out_dir")
    if not out_dir or out_dir == runner.work_dir:
        return str(runner.work_dir)
    return osp.join(out_dir, osp.basename(str(runner.work_dir).rstrip(osp.sep))) if runner.work_dir is not None else out_dir
