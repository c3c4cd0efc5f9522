"""Evaluation at intervals, and the best checkpoint."""

from __future__ import annotations

import json
import math
import os.path as osp
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from hookline.compat.mmcv.runner.hooks.checkpoint import directory_for
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.compat.mmcv.runner.hooks.logger.base import LoggerHook
from hookline.engine import Metrics
from hookline.engine.capture import restore_rng, rng_state


@HOOKS.register_module()
class EvalHook(Hook):
    """Evaluate on `dataloader` every `interval` epochs (or iterations), from `start` on, with its data set's `evaluate`.

    A run that begins at or after `start` is evaluated before it goes on. `save_best` names the metric of the best model, or
    `auto` for the first one; `rule` (`greater`, `less`) is inferred from its name. `test_fn(model, dataloader)` gives the
    results, by default of `model(return_loss=False, **batch)`. Further arguments go to `evaluate`.
    """

    rule_map: dict[str, Callable[[Any, Any], bool]] = {"greater": lambda x, y: x > y, "less": lambda x, y: x < y}
    init_value_map = {"greater": -math.inf, "less": math.inf}
    _default_greater_keys = ["acc", "top", "AR@", "auc", "precision", "mAP", "mDice", "mIoU", "mAcc", "aAcc"]
    _default_less_keys = ["loss"]
    ranks = "collective"

    def __init__(
        self,
        dataloader: Any,
        start: int | None = None,
        interval: int = 1,
        by_epoch: bool = True,
        save_best: str | None = None,
        rule: str | None = None,
        test_fn: Callable[..., Any] | None = None,
        greater_keys: Sequence[str] | None = None,
        less_keys: Sequence[str] | None = None,
        out_dir: str | None = None,
        file_client_args: dict[str, Any] | None = None,
        **eval_kwargs: Any,
    ) -> None:
        if not isinstance(dataloader, Iterable) or not hasattr(dataloader, "dataset"):
            raise TypeError(f"dataloader must be a pytorch DataLoader, but got {type(dataloader)}")
        if interval <= 0:
            raise ValueError(f"interval must be a positive number, but got {interval}")
        if start is not None and start < 0:
            raise ValueError(f"The evaluation start epoch {start} is smaller than 0")
        if file_client_args and file_client_args.get("backend") not in (None, "disk"):
            raise ValueError(f"EvalHook: only files on a disk are covered, got file_client_args={file_client_args}")
        self.dataloader: Any = dataloader
        self.start, self.interval, self.by_epoch = start, interval, by_epoch
        self.save_best, self.eval_kwargs, self.out_dir, self.initial_flag = save_best, eval_kwargs, out_dir, True
        self.test_fn = test_fn or self._default_test_fn()
        self.greater_keys = list(greater_keys or self._default_greater_keys)
        self.less_keys = list(less_keys or self._default_less_keys)
        self.best_ckpt_path: str | None = None
        if save_best is not None:
            self._init_rule(rule, save_best)

    def before_run(self, runner: Any) -> None:
        if self.save_best is not None:
            self.out_dir = directory_for(runner, self.out_dir, "EvalHook")
            runner.meta = {} if runner.meta is None else runner.meta
            self.best_ckpt_path = runner.meta.setdefault("hook_msgs", {}).get("best_ckpt")

    def before_train_iter(self, runner: Any) -> None:
        if not self.by_epoch and self.initial_flag:
            self._look_at_the_start(runner, runner.iter)

    def before_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and self.initial_flag:
            self._look_at_the_start(runner, runner.epoch)

    def after_train_iter(self, runner: Any) -> None:
        if not self.by_epoch and self._should_evaluate(runner):
            for hook in runner._hooks:  # what was logged of training is written first, apart from what is logged of this
                if isinstance(hook, LoggerHook):
                    hook.after_train_iter(runner)
            runner.log_buffer.clear()
            self._evaluate_in_its_mode(runner)

    def after_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and self._should_evaluate(runner):
            self._evaluate_in_its_mode(runner)

    def _do_evaluate(self, runner: Any) -> None:
        results = self.test_fn(runner.model, self.dataloader)
        runner.log_buffer.output["eval_iter_num"] = len(self.dataloader)
        key_score = self.evaluate(runner, results)
        if self.save_best and key_score is not None:
            self._save_ckpt(runner, key_score)

    def evaluate(self, runner: Any, results: Any) -> Any:
        """Have the data set judge the results; the score that the best model goes by."""
        eval_res = self.dataloader.dataset.evaluate(results, logger=runner.logger, **self.eval_kwargs)
        runner.log_buffer.output.update(eval_res)
        runner.log_buffer.ready = True
        runner.metrics = Metrics({name: float(value) for name, value in eval_res.items() if isinstance(value, (int, float))})
        if self.save_best is None:
            return None
        if not eval_res:
            runner.logger.warning("evaluate gave nothing, so that there is no %s to go by", self.save_best)
            return None
        if self.key_indicator == "auto":
            self._init_rule(self.rule, next(iter(eval_res)))
        return eval_res[self.key_indicator]

    def _should_evaluate(self, runner: Any) -> bool:
        done = (runner.epoch if self.by_epoch else runner.iter) + 1
        if self.start is None:
            return bool(done % self.interval == 0)
        return bool(done >= self.start and (done - self.start) % self.interval == 0)

    def _save_ckpt(self, runner: Any, key_score: Any) -> None:
        unit, done = ("epoch", runner.epoch + 1) if self.by_epoch else ("iter", runner.iter + 1)
        messages = runner.meta["hook_msgs"]
        if not self.compare_func(key_score, messages.get("best_score", self.init_value_map[str(self.rule)])):
            return
        former, name = self.best_ckpt_path, f"best_{self.key_indicator}_{unit}_{done}.pth".replace("/", "_")
        self.best_ckpt_path = osp.join(str(self.out_dir), name)
        messages.update(best_score=float(key_score), best_ckpt=self.best_ckpt_path)
        runner.saving.request(self.out_dir, name, latest=False, surplus=[osp.basename(former)] if former else [])
        runner.logger.info("Best %s is %0.4f at %d %s.", self.key_indicator, key_score, done, unit)

    def _init_rule(self, rule: str | None, key_indicator: str) -> None:
        if rule is not None and rule not in self.rule_map:
            raise KeyError(f"rule must be greater, less or None, but got {rule}.")
        if rule is None and key_indicator != "auto":
            rule = self._infer_rule(key_indicator.lower())
            if rule is None:
                raise ValueError(f"Cannot infer the rule for key {key_indicator}, thus a specific rule must be specified.")
        self.rule, self.key_indicator = rule, key_indicator
        if rule is not None:
            self.compare_func = self.rule_map[rule]

    def _infer_rule(self, key: str) -> str | None:
        named = [("greater", self.greater_keys), ("less", self.less_keys)]
        for fits in (lambda known: known == key, lambda known: known in key):
            for rule, keys in named:
                if any(fits(known.lower()) for known in keys):
                    return rule
        return None

    def _look_at_the_start(self, runner: Any, done: int) -> None:
        """Evaluate what the run begins with; its random numbers stay as they are."""
        self.initial_flag = False
        if self.start is not None and done >= self.start:
            before = rng_state()
            self._evaluate_in_its_mode(runner)
            restore_rng(before)
            runner.logger.info("Evaluated before training: %s", dict(runner.log_buffer.output))

    def _evaluate_in_its_mode(self, runner: Any) -> None:
        """Evaluate; the modules go on in the mode they were in."""
        modes = [(module, module.training) for module in runner.model.modules()]
        try:
            self._do_evaluate(runner)
        finally:
            for module, training in modes:
                module.training = training

    @staticmethod
    def _default_test_fn() -> Callable[..., Any]:
        from hookline.compat.mmcv.engine import single_gpu_test

        return single_gpu_test


@HOOKS.register_module()
class DistEvalHook(EvalHook):
    """The same for several processes: all take over the main one's BN statistics, each tests its share, the main one judges."""

    def __init__(self, dataloader: Any, *args: Any, broadcast_bn_buffer: bool = True, tmpdir: str | None = None,
                 gpu_collect: bool = False, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(dataloader, *args, **kwargs)
        self.broadcast_bn_buffer, self.tmpdir, self.gpu_collect = broadcast_bn_buffer, tmpdir, gpu_collect

    def _do_evaluate(self, runner: Any) -> None:
        if self.broadcast_bn_buffer and runner.world_size > 1:
            for module in runner.model.modules():
                if isinstance(module, _BatchNorm) and module.track_running_stats:
                    torch.distributed.broadcast(module.running_var, 0)  # type: ignore[arg-type]
                    torch.distributed.broadcast(module.running_mean, 0)  # type: ignore[arg-type]
        results = self.test_fn(runner.model, self.dataloader, tmpdir=self.tmpdir, gpu_collect=self.gpu_collect)
        verdict: list[Any] = [None, None]
        if runner.rank == 0:
            runner.log_buffer.output["eval_iter_num"] = len(self.dataloader)
            score = self.evaluate(runner, results)
            verdict = [self.key_indicator, float(score)] if self.save_best and score is not None else verdict
        key, score = json.loads(runner.world.main_says(json.dumps(verdict)))  # all take part in a save
        if score is not None:
            if self.key_indicator != key:
                self._init_rule(self.rule, key)
            self._save_ckpt(runner, score)

    @staticmethod
    def _default_test_fn() -> Callable[..., Any]:
        from hookline.compat.mmcv.engine import multi_gpu_test

        return multi_gpu_test
