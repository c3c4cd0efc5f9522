"""When to save, under which name, and what to keep. Files are written at the seam that follows, by Hookline's store."""

from __future__ import annotations

import os.path as osp
from collections.abc import Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

from hookline.checkpoint import load_checkpoint, publish
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.hooks.rules import infer_rule
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class CheckpointHook(Hook):
    """Save every `interval` epochs (or iterations), and the best by a validation metric."""

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
            raise ValueError("CheckpointHook: only local files are covered (no file_client_args or backend_args)")
        if save_begin < 0:
            raise ValueError(f"save_begin should not be less than 0, but got {save_begin}")
        self.interval, self.by_epoch, self.save_begin, self.save_last = interval, by_epoch, save_begin, save_last
        self.save_optimizer, self.save_param_scheduler, self.args = save_optimizer, save_param_scheduler, kwargs
        self.out_dir: Any = out_dir
        self.max_keep_ckpts = max_keep_ckpts
        self.filename_tmpl = filename_tmpl or ("epoch_{}.pth" if by_epoch else "iter_{}.pth")
        self.published_keys = [published_keys] if isinstance(published_keys, str) else published_keys
        self.save_best = [save_best] if isinstance(save_best, str) else save_best
        if self.save_best and len(set(self.save_best)) != len(self.save_best):
            raise AssertionError('Find duplicate element in "save_best".')
        if self.save_best and "auto" in self.save_best and len(self.save_best) > 1:
            raise AssertionError('Only support one "auto" in "save_best" list.')
        rules = rule if isinstance(rule, list) else [rule] * len(self.save_best or [])
        self._keys = [greater_keys, less_keys]
        self._rules = {key: infer_rule(key, each, *self._keys) for key, each in zip(self.save_best or [], rules, strict=False)}
        self._rule = rules[0] if rules else None
        self.last_ckpt: str | None = None
        self.best_ckpt_path: str | None = None
        self.best_ckpt_path_dict: dict[str, str | None] = {}

    def before_train(self, runner: Any) -> None:
        if self.out_dir is None:
            self.out_dir = runner.work_dir
        elif str(self.out_dir) != str(runner.work_dir):
            self.out_dir = osp.join(self.out_dir, osp.basename(str(runner.work_dir).rstrip(osp.sep)))
        runner.store_in(self.out_dir)
        runner.saver = self._saver
        runner.logger.info(f"Checkpoints will be saved to {self.out_dir}.")
        self.best_ckpt_path = runner.message_hub.get_info("best_ckpt")
        self.best_ckpt_path_dict = {key: runner.message_hub.get_info(f"best_ckpt_{key}") for key in self.save_best or ()}

    def after_train_epoch(self, runner: Any) -> None:
        due = self.every_n_epochs(runner, self.interval, self.save_begin)
        if self.by_epoch and (due or (self.save_last and self.is_last_train_epoch(runner))):
            runner.logger.info(f"Saving checkpoint at {runner.epoch + 1} epochs")
            self._save_checkpoint(runner)

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        if self.by_epoch:
            return
        if self.every_n_train_iters(runner, self.interval, self.save_begin) or (self.save_last and self.is_last_train_iter(runner)):
            runner.logger.info(f"Saving checkpoint at {runner.iter + 1} iterations")
            self._save_checkpoint(runner)

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        if not metrics:
            runner.logger.warning("the validation gave no metrics, so no best checkpoint is saved")
            return
        if self.save_best == ["auto"]:
            first = next(iter(metrics))
            self.save_best, self._rules = [first], {first: infer_rule(first, self._rule, *self._keys)}
        for key in self.save_best or ():
            if key not in metrics:
                raise KeyError(f"save_best={key!r} is not among the metrics: {', '.join(metrics)}")
            self._save_if_best(runner, key, metrics[key])

    def after_train(self, runner: Any) -> None:
        if self.published_keys is None or not runner.is_main:
            return
        best = [self.best_ckpt_path, *self.best_ckpt_path_dict.values()]
        for path in dict.fromkeys([*([self.last_ckpt] if self.save_last else []), *best]):
            if path is not None and osp.isfile(path):
                self._publish_model(runner, path)

    def _save_if_best(self, runner: Any, key: str, score: Any) -> None:
        suffix = "" if len(self.save_best or ()) == 1 else f"_{key}"
        rule, hub = self._rules[key], runner.message_hub
        best = hub.get_info(f"best_score{suffix}", -inf if rule == "greater" else inf)
        if score is None or not isfinite(score) or not (score > best if rule == "greater" else score < best):
            return
        unit, number = ("epoch", runner.epoch) if self.by_epoch else ("iter", runner.iter)
        name = f"best_{key}_{self.filename_tmpl.format(number)}".replace("/", "_")
        previous = hub.get_info(f"best_ckpt{suffix}")
        hub.update_info(f"best_score{suffix}", float(score))
        hub.update_info(f"best_ckpt{suffix}", osp.join(self.out_dir, name))
        self.best_ckpt_path_dict[key] = self.best_ckpt_path = osp.join(self.out_dir, name)

        def write() -> None:
            meta = runner.position_after()
            runner.save_checkpoint(self.out_dir, name, save_optimizer=False, save_param_scheduler=False, meta=meta, by_epoch=False)
            if previous and osp.basename(previous) != name and runner.is_main:  # only now: until then the old one is the best
                runner.store_in(self.out_dir).remove(osp.basename(previous))
            runner.logger.info(f"The best checkpoint with {score:0.4f} {key} at {number} {unit} is saved to {name}.")

        runner.request_save(write=write)

    def _save_checkpoint(self, runner: Any) -> None:
        """Ask for a checkpoint of this epoch or iteration; it is taken when all hooks of the stage have run."""
        step = runner.epoch + 1 if self.by_epoch else runner.iter + 1
        runner.request_save(write=lambda: self._save_checkpoint_with_step(runner, step, runner.position_after()))

    def _saver(self, name: str | None) -> Any:
        """For whoever else asks the runner for a checkpoint: a signal, or a hook of Hookline's own."""

        def write() -> None:
            runner: Any = self.runner
            meta = runner.position_after()
            self._save_checkpoint_with_step(runner, meta["epoch"] if self.by_epoch and not meta["inner_iter"] else meta["iter"], meta, name)

        return write

    def _save_checkpoint_with_step(self, runner: Any, step: int, meta: dict[str, Any], name: str | None = None) -> None:
        hub, surplus = runner.message_hub, []
        inside = self.by_epoch and step != meta["epoch"]  # asked for in the middle of an epoch
        filename = f"{name}.pth" if name else f"iter_{step}.pth" if inside else self.filename_tmpl.format(step)
        if self.max_keep_ckpts > 0 and not inside and not name:
            kept = [number for number in hub.get_info("keep_ckpt_ids", []) if number != step] + [step]
            kept, surplus = kept[-self.max_keep_ckpts :], kept[: -self.max_keep_ckpts]
            hub.update_info("keep_ckpt_ids", kept)
        self.last_ckpt = osp.join(self.out_dir, filename)
        hub.update_info("last_ckpt", self.last_ckpt)
        options = {"save_optimizer": self.save_optimizer, "save_param_scheduler": self.save_param_scheduler, **self.args}
        runner.save_checkpoint(self.out_dir, filename, meta=dict(meta), by_epoch=self.by_epoch, **options)
        if runner.is_main:
            runner.store_in(self.out_dir).remove(*(self.filename_tmpl.format(number) for number in surplus))
            here = osp.abspath(self.out_dir) == osp.abspath(runner.work_dir)  # a name alone stays right when the folder is moved
            Path(runner.work_dir, "last_checkpoint").write_text(filename if here else self.last_ckpt, encoding="utf-8")

    def _publish_model(self, runner: Any, path: str) -> None:
        checkpoint = load_checkpoint(path)
        keys = [key for key in checkpoint if key in (self.published_keys or ())]
        # `state_dict` holds the averaged weights already, so the raw ones beside them must not take their place.
        kept = {key: value for key, value in checkpoint.items() if key in keys}
        final = publish(kept, osp.splitext(path)[0], "pth", keys)
        runner.logger.info(f"The checkpoint ({path}) is published to {final}.")
