"""MMEngine's CheckpointHook. Hookline's store writes the files at the seam that follows."""

from __future__ import annotations

import os.path as osp
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from hookline.checkpoint import load_checkpoint, publish
from hookline.checkpoint.names import is_number_template
from hookline.checkpoint.retention import retain, superseded
from hookline.compat.metric_rules import infer_rule
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.hooks.seam_files import FilesAtSeams
from hookline.compat.mmengine.registry import HOOKS
from hookline.errors import parameter_error
from hookline.files import replace_file
from hookline.intervals import is_due


@HOOKS.register_module()
class CheckpointHook(FilesAtSeams, Hook):
    """Save checkpoints at intervals, delete old ones, and keep the best ones.

    Args:
        interval: The number of epochs (or iterations) between two saves; -1 for none.
        by_epoch: Whether `interval` counts epochs; otherwise it counts iterations.
        save_optimizer: Whether the state of the optimizer is saved.
        save_param_scheduler: Whether the state of the parameter schedulers is saved.
        out_dir: The parent of the directory for the files, which has the name of the work
            directory; None for the work directory itself.
        max_keep_ckpts: The number of newest files to keep; -1 for all.
        save_last: Whether the end of the run is saved too.
        save_best: The metric of the best checkpoint; `auto` for the first one.
        rule: `greater` or `less`; None to infer it from the metric's name.
        greater_keys: Parts of the names of metrics of which a higher value is better.
        less_keys: Parts of the names of metrics of which a lower value is better.
        filename_tmpl: The name of a file, with `{}` for the number.
        published_keys: The keys that a published checkpoint keeps; None to publish nothing.
        save_begin: The first epoch (or iteration) that is saved.
    """

    priority = "VERY_LOW"

    def __init__(
        self,
        interval: int = -1,
        by_epoch: bool = True,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        out_dir: str | Path | None = None,
        max_keep_ckpts: int = -1,
        save_last: bool = True,
        save_best: str | None = None,
        rule: str | None = None,
        greater_keys: Sequence[str] | None = None,
        less_keys: Sequence[str] | None = None,
        filename_tmpl: str | None = None,
        published_keys: str | Sequence[str] | None = None,
        save_begin: int = 0,
    ) -> None:
        self.interval = interval
        self.by_epoch = by_epoch
        self.save_begin = save_begin
        self.save_last = save_last
        self.save_optimizer = save_optimizer
        self.save_param_scheduler = save_param_scheduler
        self.out_dir: Any = out_dir
        self.max_keep_ckpts = max_keep_ckpts
        self.filename_tmpl = filename_tmpl or ("epoch_{}.pth" if by_epoch else "iter_{}.pth")
        if "{" in self.filename_tmpl and not is_number_template(self.filename_tmpl):
            raise parameter_error(self, "filename_tmpl", "needs a {} or {:03d} for the number")
        self.published_keys = published_keys
        if isinstance(published_keys, str):
            self.published_keys = [published_keys]
        self.save_best = save_best
        self.rule = rule
        self.greater_keys = greater_keys
        self.less_keys = less_keys
        if save_best is not None:
            self.rule = infer_rule(save_best, rule, greater_keys, less_keys)
        self.last_ckpt: str | None = None
        self.best_ckpt_path: str | None = None

    def before_train(self, runner: Any) -> None:
        if self.out_dir is None:
            self.out_dir = runner.work_dir
        elif str(self.out_dir) != str(runner.work_dir):
            name = osp.basename(str(runner.work_dir).rstrip(osp.sep))
            self.out_dir = osp.join(self.out_dir, name)
        runner.store_in(self.out_dir)
        runner.checkpointer.enable(self._make_write)
        runner.logger.info(f"Checkpoints will be saved to {self.out_dir}.")
        self.best_ckpt_path = runner.message_hub.get_info("best_ckpt")

    def after_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and self._is_due(runner.epoch + 1, runner.max_epochs):
            runner.logger.info(f"Saving checkpoint at {runner.epoch + 1} epochs")
            self._save_checkpoint(runner)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        if not self.by_epoch and self._is_due(runner.iter + 1, runner.max_iters):
            runner.logger.info(f"Saving checkpoint at {runner.iter + 1} iterations")
            self._save_checkpoint(runner)

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        if self.save_best is None:
            return
        if not metrics:
            runner.logger.warning("validation returned no metrics: no best checkpoint is saved")
            return
        if self.save_best == "auto":
            self.save_best = next(iter(metrics))
            self.rule = infer_rule(self.save_best, self.rule, self.greater_keys, self.less_keys)
        if self.save_best not in metrics:
            known = ", ".join(metrics)
            raise KeyError(f"save_best={self.save_best!r} is not among the metrics: {known}")
        score = float(metrics[self.save_best])
        if self._is_best(score, runner.message_hub.get_info("best_score")):
            self._request_best(runner, self.save_best, score)

    def after_train(self, runner: Any) -> None:
        if self.published_keys is None or not runner.is_main:
            return
        paths = [self.best_ckpt_path]
        if self.save_last:
            paths.insert(0, self.last_ckpt)
        for path in dict.fromkeys(paths):
            if path is not None and osp.isfile(path):
                self._publish_model(runner, path)

    def _is_due(self, completed: int, end: int | None) -> bool:
        end = end if self.save_last else None
        return is_due(completed, self.interval, self.save_begin, end)

    def _is_best(self, score: float, best: float | None) -> bool:
        if not isfinite(score):
            return False
        if best is None:
            return True
        return score > best if self.rule == "greater" else score < best

    def _request_best(self, runner: Any, key: str, score: float) -> None:
        unit = "epoch" if self.by_epoch else "iter"
        number = getattr(runner, unit)
        name = f"best_{key}_{self.filename_tmpl.format(number)}".replace("/", "_")
        hub = runner.message_hub
        previous = hub.get_info("best_ckpt")
        surplus = superseded(osp.basename(previous) if previous else None, name)
        self.best_ckpt_path = osp.join(self.out_dir, name)
        hub.update_info("best_score", score)
        hub.update_info("best_ckpt", self.best_ckpt_path)

        def write() -> None:
            runner.save_checkpoint(
                self.out_dir,
                name,
                save_optimizer=False,
                save_param_scheduler=False,
                meta=runner.position_after(),
                by_epoch=False,
            )
            # Delete only now: until the new file is written, the old one is the best.
            self._remove(runner, surplus)
            runner.logger.info(
                f"The best checkpoint with {score:0.4f} {key} at {number} {unit} "
                f"is saved to {name}."
            )

        runner.request_write(write)

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict[str, Any]) -> None:
        surplus = self._drop_surplus(runner.message_hub, step)
        self._write(runner, self.filename_tmpl.format(step), meta)
        self._remove(runner, [self.filename_tmpl.format(number) for number in surplus])

    def _write(self, runner: Any, file: str, meta: dict[str, Any]) -> None:
        self.last_ckpt = osp.join(self.out_dir, file)
        runner.message_hub.update_info("last_ckpt", self.last_ckpt)
        runner.save_checkpoint(
            self.out_dir,
            file,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
            meta=dict(meta),
            by_epoch=self.by_epoch,
        )
        if runner.is_main:
            self._record_last(runner, file)

    def _remove(self, runner: Any, names: list[str]) -> None:
        if names and runner.is_main:
            runner.store_in(self.out_dir).remove(*names)

    def _drop_surplus(self, hub: Any, step: int) -> list[int]:
        """Record a new checkpoint, and return the numbers of those to delete."""
        known = hub.get_info("keep_ckpt_ids", [])
        if self.max_keep_ckpts < 1 or step in known:
            return []
        kept, surplus = retain([*known, step], self.max_keep_ckpts)
        hub.update_info("keep_ckpt_ids", kept)
        return surplus

    def _record_last(self, runner: Any, filename: str) -> None:
        """Write `last_checkpoint`: a name if possible, which stays right in a moved directory."""
        in_work_dir = osp.abspath(self.out_dir) == osp.abspath(runner.work_dir)
        text = filename if in_work_dir else str(self.last_ckpt)
        replace_file(Path(runner.work_dir, "last_checkpoint"), text)

    def _publish_model(self, runner: Any, path: str) -> None:
        checkpoint = load_checkpoint(path)
        keys = [key for key in checkpoint if key in (self.published_keys or ())]
        # `state_dict` holds the averaged weights already: keep the raw ones from replacing them.
        published = {key: checkpoint[key] for key in keys}
        final = publish(published, osp.splitext(path)[0], "pth", keys)
        runner.logger.info(f"The checkpoint ({path}) is published to {final}.")
