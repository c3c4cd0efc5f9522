"""MMCV's CheckpointHook. The runner writes at the next seam, after all hooks of the site."""

from __future__ import annotations

from typing import Any

from hookline.checkpoint.names import is_number_template
from hookline.checkpoint.retention import retain
from hookline.compat.mmcv.runner.dist_utils import allreduce_params, master_only
from hookline.compat.mmcv.runner.file_client import join_path, resolve_out_dir
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
        file_client_args: The storage of `out_dir`, by default that of its prefix.
        kwargs: Further arguments of `runner.save_checkpoint`.
    """

    reads_checkpoints = False
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
        self.interval = interval
        self.by_epoch = by_epoch
        self.save_optimizer = save_optimizer
        self.out_dir = out_dir
        self.max_keep_ckpts = max_keep_ckpts
        self.save_last = save_last
        self.sync_buffer = sync_buffer
        self.args = kwargs
        self.file_client_args = file_client_args
        self.file_client: Any = None
        if "{" in self._template and not is_number_template(self._template):
            raise ConfigError(
                "needs a {} or {:03d} for the number",
                component="CheckpointHook",
                parameter="filename_tmpl",
                value=self._template,
            )

    def before_run(self, runner: Any) -> None:
        self.out_dir, self.file_client = resolve_out_dir(
            runner, self.out_dir, "CheckpointHook", self.file_client_args
        )
        runner.checkpointer.enable(runner.work_dir if self.file_client else self.out_dir)

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
        if self._is_read_next(runner):
            runner.checkpointer.save_now(
                self.out_dir, [name], self.save_optimizer, self.args.get("meta") or {}
            )
        if runner.meta is not None:
            messages = runner.meta.setdefault("hook_msgs", {})
            messages["last_ckpt"] = join_path(self.file_client, self.out_dir, name)
        runner.checkpointer.request_file(
            self.out_dir,
            name,
            self.save_optimizer,
            surplus=self._surplus(number),
            client=self.file_client,
            **self._other_args,
        )

    def _is_read_next(self, runner: Any) -> bool:
        """Return whether hooks after this one may read the file, before the seam writes it."""
        if self.file_client is not None or runner.loop.accumulating:
            return False
        site = "after_train_epoch" if self.by_epoch else "after_train_iter"
        hooks = runner.sites.hooks[site]
        later = hooks[hooks.index(self) + 1 :] if self in hooks else []
        return any(getattr(hook, "reads_checkpoints", False) for hook in later)

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
