"""MMCV's CheckpointHook. The runner writes at the next seam, after all hooks of the site."""

from __future__ import annotations

import os.path as osp
from typing import Any

from hookline.checkpoint.names import is_number_template
from hookline.checkpoint.retention import retain
from hookline.compat.mmcv.runner.dist_utils import allreduce_params, master_only
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.errors import ConfigError
from hookline.intervals import is_due


@HOOKS.register_module()
class CheckpointHook(Hook):
    """Save checkpoints at intervals and delete old ones.

    A checkpoint holds the state between two iterations, whatever the priorities of the hooks are.

    Args:
        interval: The number of epochs (or iterations) between two saves; -1 for none.
        by_epoch: Whether `interval` counts epochs; otherwise it counts iterations.
        save_optimizer: Whether the state of the optimizer is saved.
        out_dir: The parent of the directory for the files, which has the name of the work
            directory; None for the work directory itself.
        max_keep_ckpts: The number of newest files to keep; -1 for all.
        save_last: Whether the end of the run is saved too.
        sync_buffer: Whether the model's buffers are averaged over all ranks before a save.
        file_client_args: Only the backend `disk` is supported.
        kwargs: Further arguments of `runner.save_checkpoint`.
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
        check_file_client("CheckpointHook", file_client_args)
        self.interval = interval
        self.by_epoch = by_epoch
        self.save_optimizer = save_optimizer
        self.out_dir = out_dir
        self.max_keep_ckpts = max_keep_ckpts
        self.save_last = save_last
        self.sync_buffer = sync_buffer
        self.args = kwargs
        if "{" in self._template and not is_number_template(self._template):
            raise ConfigError(
                "needs a {} or {:03d} for the number",
                component="CheckpointHook",
                parameter="filename_tmpl",
                value=self._template,
            )

    def before_run(self, runner: Any) -> None:
        self.out_dir = resolve_out_dir(runner, self.out_dir, "CheckpointHook")
        runner.checkpointer.enable(self.out_dir)

    def after_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and self._is_due(runner.epoch + 1, runner.max_epochs):
            runner.logger.info("Saving checkpoint at %d epochs", runner.epoch + 1)
            self._save(runner, runner.epoch + 1)

    def after_train_iter(self, runner: Any) -> None:
        if not self.by_epoch and self._is_due(runner.iter + 1, runner.max_iters):
            runner.logger.info("Saving checkpoint at %d iterations", runner.iter + 1)
            self._save(runner, runner.iter + 1)

    @master_only
    def _save_checkpoint(self, runner: Any) -> None:
        """Save the current state at once. MMCV has this method, and subclasses override it."""
        runner.save_checkpoint(
            self.out_dir,
            save_optimizer=self.save_optimizer,
            filename_tmpl=self._template,
            **self._other_args,
        )

    def _is_due(self, completed: int, end: int | None) -> bool:
        return is_due(completed, self.interval, end=end if self.save_last else None)

    def _save(self, runner: Any, number: int) -> None:
        if self.sync_buffer:
            allreduce_params(runner.model.buffers())
        if type(self)._save_checkpoint is not CheckpointHook._save_checkpoint:
            self._save_checkpoint(runner)
            return
        name = self._template.format(number)
        if runner.meta is not None:
            messages = runner.meta.setdefault("hook_msgs", {})
            messages["last_ckpt"] = osp.join(str(self.out_dir), name)
        runner.checkpointer.request_file(
            self.out_dir,
            name,
            self.save_optimizer,
            surplus=self._surplus(number),
            **self._other_args,
        )

    def _surplus(self, number: int) -> list[str]:
        """Return the files to delete. MMCV derives their numbers from the interval."""
        if self.interval < 1:
            return []
        saved = reversed(range(number, 0, -self.interval))
        _, surplus = retain(saved, self.max_keep_ckpts)
        return [self._template.format(old) for old in surplus]

    @property
    def _template(self) -> str:
        default = "epoch_{}.pth" if self.by_epoch else "iter_{}.pth"
        return str(self.args.get("filename_tmpl", default))

    @property
    def _other_args(self) -> dict[str, Any]:
        return {key: value for key, value in self.args.items() if key != "filename_tmpl"}


def check_file_client(owner: str, file_client_args: dict[str, Any] | None) -> None:
    """Raise ValueError unless files are kept on a disk."""
    if file_client_args and file_client_args.get("backend") not in (None, "disk"):
        raise ValueError(
            f"{owner}: only the backend 'disk' is supported, "
            f"got file_client_args={file_client_args}"
        )


def resolve_out_dir(runner: Any, out_dir: str | None, owner: str) -> str:
    """Return the work directory, or the directory of its name in `out_dir`."""
    if runner.work_dir is None:
        if not out_dir:
            raise ValueError(f"{owner}: the runner has no work_dir; give the hook an out_dir")
        return out_dir
    if not out_dir or out_dir == runner.work_dir:
        return str(runner.work_dir)
    return osp.join(out_dir, osp.basename(str(runner.work_dir).rstrip(osp.sep)))
