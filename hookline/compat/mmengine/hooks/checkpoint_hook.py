"""MMEngine's CheckpointHook. Hookline's store writes the files at the seam that follows."""

from __future__ import annotations

import os.path as osp
from collections.abc import Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

from hookline.checkpoint import load_checkpoint, publish
from hookline.checkpoint.names import is_number_template
from hookline.checkpoint.retention import retain, superseded
from hookline.compat.metric_rules import infer_rule
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS
from hookline.errors import parameter_error
from hookline.files import replace_file
from hookline.intervals import is_due


@HOOKS.register_module()
class CheckpointHook(Hook):
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
        save_best: The metric, or metrics, of the best checkpoint; `auto` for the first one.
        rule: `greater` or `less`, for each metric; None to infer it from the metric's name.
        greater_keys: Parts of the names of metrics of which a higher value is better.
        less_keys: Parts of the names of metrics of which a lower value is better.
        file_client_args: Not supported.
        filename_tmpl: The name of a file, with `{}` for the number.
        backend_args: Not supported.
        published_keys: The keys that a published checkpoint keeps; None to publish nothing.
        save_begin: The first epoch (or iteration) that is saved.
        kwargs: Further arguments of `runner.save_checkpoint`.
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
        save_best: str | list[str] | None = None,
        rule: str | list[str] | None = None,
        greater_keys: Sequence[str] | None = None,
        less_keys: Sequence[str] | None = None,
        file_client_args: Any = None,
        filename_tmpl: str | None = None,
        backend_args: Any = None,
        published_keys: str | list[str] | None = None,
        save_begin: int = 0,
        **kwargs: Any,
    ) -> None:
        if file_client_args or backend_args:
            raise ValueError(
                "CheckpointHook: file_client_args and backend_args are not supported, "
                "files are kept on a local disk"
            )
        if save_begin < 0:
            raise ValueError(f"save_begin should not be less than 0, but got {save_begin}")
        self.interval = interval
        self.by_epoch = by_epoch
        self.save_begin = save_begin
        self.save_last = save_last
        self.save_optimizer = save_optimizer
        self.save_param_scheduler = save_param_scheduler
        self.args = kwargs
        self.out_dir: Any = out_dir
        self.max_keep_ckpts = max_keep_ckpts
        self.filename_tmpl = filename_tmpl or ("epoch_{}.pth" if by_epoch else "iter_{}.pth")
        if "{" in self.filename_tmpl and not is_number_template(self.filename_tmpl):
            raise parameter_error(self, "filename_tmpl", "needs a {} or {:03d} for the number")
        self.published_keys = _as_list(published_keys)
        self.save_best = _as_list(save_best)
        self._metric_keys = [greater_keys, less_keys]
        self._init_rules(rule)
        self.last_ckpt: str | None = None
        self.best_ckpt_path: str | None = None
        self.best_ckpt_path_dict: dict[str, str | None] = {}

    def _init_rules(self, rule: str | list[str] | None) -> None:
        metrics = self.save_best or []
        if len(set(metrics)) != len(metrics):
            raise AssertionError('Find duplicate element in "save_best".')
        if "auto" in metrics and len(metrics) > 1:
            raise AssertionError('Only support one "auto" in "save_best" list.')
        rules = rule if isinstance(rule, list) else [rule] * len(metrics)
        self._auto_rule = rules[0] if rules else None
        self._rules: dict[str, str | None] = {}
        for key, metric_rule in zip(metrics, rules, strict=False):
            self._rules[key] = infer_rule(key, metric_rule, *self._metric_keys)

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
        self.best_ckpt_path_dict = {}
        for key in self.save_best or ():
            self.best_ckpt_path_dict[key] = runner.message_hub.get_info(f"best_ckpt_{key}")

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
        if not metrics:
            runner.logger.warning("validation returned no metrics: no best checkpoint is saved")
            return
        if self.save_best == ["auto"]:
            first = next(iter(metrics))
            self.save_best = [first]
            self._rules = {first: infer_rule(first, self._auto_rule, *self._metric_keys)}
        for key in self.save_best or ():
            if key not in metrics:
                raise KeyError(f"save_best={key!r} is not among the metrics: {', '.join(metrics)}")
            self._save_if_best(runner, key, metrics[key])

    def after_train(self, runner: Any) -> None:
        if self.published_keys is None or not runner.is_main:
            return
        paths = [self.best_ckpt_path, *self.best_ckpt_path_dict.values()]
        if self.save_last:
            paths.insert(0, self.last_ckpt)
        for path in dict.fromkeys(paths):
            if path is not None and osp.isfile(path):
                self._publish_model(runner, path)

    def _is_due(self, completed: int, end: int | None) -> bool:
        end = end if self.save_last else None
        return is_due(completed, self.interval, self.save_begin, end)

    def _save_if_best(self, runner: Any, key: str, score: Any) -> None:
        suffix = "" if len(self.save_best or ()) == 1 else f"_{key}"
        hub = runner.message_hub
        if not self._is_best(key, score, hub.get_info(f"best_score{suffix}")):
            return
        unit = "epoch" if self.by_epoch else "iter"
        number = runner.epoch if self.by_epoch else runner.iter
        name = f"best_{key}_{self.filename_tmpl.format(number)}".replace("/", "_")
        path = osp.join(self.out_dir, name)
        previous = hub.get_info(f"best_ckpt{suffix}")
        surplus = superseded(osp.basename(previous) if previous else None, name)
        hub.update_info(f"best_score{suffix}", float(score))
        hub.update_info(f"best_ckpt{suffix}", path)
        self.best_ckpt_path = path
        self.best_ckpt_path_dict[key] = path

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

    def _is_best(self, key: str, score: Any, best: float | None) -> bool:
        if score is None or not isfinite(score):
            return False
        if self._rules[key] == "greater":
            return bool(score > (-inf if best is None else best))
        return bool(score < (inf if best is None else best))

    def _save_checkpoint(self, runner: Any) -> None:
        """Request a checkpoint of this epoch or iteration, taken after all hooks of the stage."""
        step = runner.epoch + 1 if self.by_epoch else runner.iter + 1
        runner.request_write(
            lambda: self._save_checkpoint_with_step(runner, step, runner.position_after())
        )

    def _make_write(self, name: str) -> Any:
        """Return a function that writes a checkpoint for a signal or another hook."""

        def write() -> None:
            runner: Any = self.runner
            meta = runner.position_after()
            at_epoch_end = self.by_epoch and not meta["inner_iter"]
            step = meta["epoch"] if at_epoch_end else meta["iter"]
            file = None if name == "last" else name
            self._save_checkpoint_with_step(runner, step, meta, file)

        return write

    def _save_checkpoint_with_step(
        self, runner: Any, step: int, meta: dict[str, Any], name: str | None = None
    ) -> None:
        in_epoch = self.by_epoch and step != meta["epoch"]
        surplus: list[int] = []
        if name:
            filename = f"{name}.pth"
        elif in_epoch:
            filename = f"iter_{step}.pth"
        else:
            filename = self.filename_tmpl.format(step)
            surplus = self._drop_surplus(runner.message_hub, step)
        self.last_ckpt = osp.join(self.out_dir, filename)
        runner.message_hub.update_info("last_ckpt", self.last_ckpt)
        options = {
            "save_optimizer": self.save_optimizer,
            "save_param_scheduler": self.save_param_scheduler,
            **self.args,
        }
        runner.save_checkpoint(
            self.out_dir, filename, meta=dict(meta), by_epoch=self.by_epoch, **options
        )
        self._remove(runner, [self.filename_tmpl.format(number) for number in surplus])
        if runner.is_main:
            self._record_last(runner, filename)

    def _remove(self, runner: Any, names: list[str]) -> None:
        if names and runner.is_main:
            runner.store_in(self.out_dir).remove(*names)

    def _drop_surplus(self, hub: Any, step: int) -> list[int]:
        """Record a new checkpoint, and return the numbers of those to delete."""
        if self.max_keep_ckpts < 1:
            return []
        kept, surplus = retain([*hub.get_info("keep_ckpt_ids", []), step], self.max_keep_ckpts)
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


def _as_list(given: str | list[str] | None) -> list[str] | None:
    return [given] if isinstance(given, str) else given
