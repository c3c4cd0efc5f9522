"""MMCV's EvalHook and DistEvalHook: evaluation at intervals, and the best checkpoint."""

from __future__ import annotations

import json
import math
import os.path as osp
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import DataLoader

from hookline.checkpoint.retention import superseded
from hookline.compat.metric_rules import GREATER_KEYS, LESS_KEYS, infer_rule
from hookline.compat.mmcv.errors import require
from hookline.compat.mmcv.runner.file_client import join_path, resolve_out_dir
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.compat.mmcv.runner.hooks.logger.base import LoggerHook
from hookline.compat.persistent_workers import capture_workers, continuing_workers
from hookline.engine import Metrics
from hookline.intervals import is_due
from hookline.rng import restore_rng, rng_state


@HOOKS.register_module()
class EvalHook(Hook):
    """Evaluate at intervals with the data set's `evaluate`, and save the best checkpoint.

    Args:
        dataloader: The loader of the evaluation.
        start: The first epoch (or iteration) to evaluate. A run that begins at or after it is
            evaluated before it continues.
        interval: The number of epochs (or iterations) between two evaluations.
        by_epoch: Whether `start` and `interval` count epochs; otherwise they count iterations.
        save_best: The metric of the best checkpoint; `auto` for the first one.
        rule: `greater` or `less`; None to infer it from the metric's name.
        test_fn: A function of model and loader that returns the results. By default they are those
            of `model(return_loss=False, **batch)`.
        greater_keys: Parts of the names of metrics of which a higher value is better.
        less_keys: Parts of the names of metrics of which a lower value is better.
        out_dir: The parent of the directory for the best checkpoint; see `CheckpointHook`.
        file_client_args: The storage of `out_dir`, by default that of its prefix.
        eval_kwargs: Further arguments of `evaluate`.
    """

    reads_checkpoints = False

    rule_map: dict[str, Callable[[Any, Any], bool]] = {
        "greater": lambda x, y: x > y,
        "less": lambda x, y: x < y,
    }
    init_value_map = {"greater": -math.inf, "less": math.inf}
    _default_greater_keys = list(GREATER_KEYS)
    _default_less_keys = list(LESS_KEYS)
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
        if not isinstance(dataloader, DataLoader):
            raise TypeError(f"dataloader must be a pytorch DataLoader, but got {type(dataloader)}")
        if interval <= 0:
            raise ValueError(f"interval must be a positive number, but got {interval}")
        if start is not None and start < 0:
            raise ValueError(f"The evaluation start epoch {start} is smaller than 0")
        is_text = save_best is None or isinstance(save_best, str)
        require(is_text, self, "save_best", "must be the name of a metric or None", save_best)
        self.dataloader: Any = dataloader
        self.start = start
        self.interval = interval
        self.by_epoch = by_epoch
        self.save_best = save_best
        self.out_dir = out_dir
        self.file_client_args = file_client_args
        self.file_client: Any = None
        self.eval_kwargs = eval_kwargs
        self.initial_flag = True
        self.test_fn = test_fn or self._default_test_fn()
        self.greater_keys = self._default_greater_keys if greater_keys is None else greater_keys
        self.less_keys = self._default_less_keys if less_keys is None else less_keys
        self.best_ckpt_path: str | None = None
        self._resumed_workers: torch.Tensor | None = None
        if save_best is not None:
            self._init_rule(rule, save_best)

    def before_run(self, runner: Any) -> None:
        if self.save_best is None:
            return
        self.out_dir, self.file_client = resolve_out_dir(
            runner, self.out_dir, "EvalHook", self.file_client_args
        )
        if runner.meta is None:
            runner.meta = {}
        self.best_ckpt_path = runner.meta.setdefault("hook_msgs", {}).get("best_ckpt")

    def before_train_iter(self, runner: Any) -> None:
        if not self.by_epoch and self.initial_flag:
            self._evaluate_at_start(runner, runner.iter)

    def before_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and self.initial_flag:
            self._evaluate_at_start(runner, runner.epoch)

    def after_train_iter(self, runner: Any) -> None:
        if self.by_epoch or not self._should_evaluate(runner):
            return
        # Write the training log first, so that it stays apart from the results of the evaluation.
        for hook in runner._hooks:
            if isinstance(hook, LoggerHook):
                hook.after_train_iter(runner)
        runner.log_buffer.clear()
        self._evaluate_and_restore_modes(runner)

    def after_train_epoch(self, runner: Any) -> None:
        if self.by_epoch and self._should_evaluate(runner):
            self._evaluate_and_restore_modes(runner)

    def state_dict(self) -> dict[str, Any]:
        workers = capture_workers(self.dataloader)
        return {} if workers is None else {"workers": workers}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._resumed_workers = state.get("workers")

    def _do_evaluate(self, runner: Any) -> None:
        results = self.test_fn(runner.model, self.dataloader)
        runner.log_buffer.output["eval_iter_num"] = len(self.dataloader)
        key_score = self.evaluate(runner, results)
        if self.save_best and key_score is not None:
            self._save_ckpt(runner, key_score)

    def evaluate(self, runner: Any, results: Any) -> Any:
        """Evaluate the results with the data set and return the score of the best checkpoint."""
        eval_res = self.dataloader.dataset.evaluate(
            results, logger=runner.logger, **self.eval_kwargs
        )
        runner.log_buffer.output.update(eval_res)
        runner.log_buffer.ready = True
        runner.metrics = Metrics()
        for name, value in eval_res.items():
            if isinstance(value, (int, float)):
                runner.metrics[name] = float(value)
        if self.save_best is None:
            return None
        if not eval_res:
            warnings.warn(
                "Since `eval_res` is an empty dict, the behavior to save the best checkpoint will "
                "be skipped in this evaluation.",
                stacklevel=2,
            )
            return None
        if self.key_indicator == "auto":
            self._init_rule(self.rule, next(iter(eval_res)))
        return eval_res[self.key_indicator]

    def _should_evaluate(self, runner: Any) -> bool:
        progress = runner.epoch if self.by_epoch else runner.iter
        return is_due(progress + 1, self.interval, self.start or 0)

    def _save_ckpt(self, runner: Any, key_score: Any) -> None:
        messages = runner.meta["hook_msgs"]
        best_score = messages.get("best_score", self.init_value_map[str(self.rule)])
        if not self.compare_func(key_score, best_score):
            return
        unit = "epoch" if self.by_epoch else "iter"
        number = (runner.epoch if self.by_epoch else runner.iter) + 1
        name = f"best_{self.key_indicator}_{unit}_{number}.pth".replace("/", "_")
        previous = osp.basename(self.best_ckpt_path) if self.best_ckpt_path else None
        self.best_ckpt_path = join_path(self.file_client, self.out_dir, name)
        messages.update(best_score=float(key_score), best_ckpt=self.best_ckpt_path)
        surplus = superseded(previous, name)
        runner.checkpointer.request_file(
            self.out_dir, name, latest=False, surplus=surplus, client=self.file_client
        )
        runner.logger.info(
            "Best %s is %0.4f at %d %s.", self.key_indicator, key_score, number, unit
        )

    def _init_rule(self, rule: str | None, key_indicator: str) -> None:
        self.rule = infer_rule(key_indicator, rule, self.greater_keys, self.less_keys)
        self.key_indicator = key_indicator
        if self.rule is not None:
            self.compare_func = self.rule_map[self.rule]

    def _evaluate_at_start(self, runner: Any, progress: int) -> None:
        """Evaluate the state that the run begins with, and restore the random numbers."""
        self.initial_flag = False
        if self.start is None or progress < self.start:
            return
        before = rng_state()
        self._evaluate_and_restore_modes(runner)
        restore_rng(before)
        runner.logger.info("Evaluated before training: %s", dict(runner.log_buffer.output))

    def _evaluate_and_restore_modes(self, runner: Any) -> None:
        """Evaluate, then restore the training mode of each module."""
        modes = [(module, module.training) for module in runner.model.modules()]
        workers = continuing_workers(self.dataloader, self._resumed_workers)
        self._resumed_workers = None
        try:
            with workers:
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
    """EvalHook for several ranks: each tests its share of the data, and rank 0 evaluates all.

    Args:
        dataloader: The loader of this rank's share.
        args: Further arguments of `EvalHook` by position.
        broadcast_bn_buffer: Whether all ranks use the batch norm statistics of rank 0.
        tmpdir: The directory in which `test_fn` collects the results.
        gpu_collect: Whether `test_fn` collects the results on the GPUs.
        kwargs: Further arguments of `EvalHook` by keyword.
    """

    def __init__(
        self,
        dataloader: Any,
        *args: Any,
        broadcast_bn_buffer: bool = True,
        tmpdir: str | None = None,
        gpu_collect: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(dataloader, *args, **kwargs)
        self.broadcast_bn_buffer = broadcast_bn_buffer
        self.tmpdir = tmpdir
        self.gpu_collect = gpu_collect

    def _do_evaluate(self, runner: Any) -> None:
        if self.broadcast_bn_buffer and runner.world_size > 1:
            _broadcast_batch_norm(runner.model)
        results = self.test_fn(
            runner.model, self.dataloader, tmpdir=self.tmpdir, gpu_collect=self.gpu_collect
        )
        best: list[Any] = [None, None]
        if runner.rank == 0:
            runner.log_buffer.output["eval_iter_num"] = len(self.dataloader)
            score = self.evaluate(runner, results)
            if self.save_best and score is not None:
                best = [self.key_indicator, float(score)]
        # Broadcast the result of rank 0: a save needs all ranks.
        key, score = json.loads(runner.world.broadcast_str(json.dumps(best)))
        if score is None:
            return
        if self.key_indicator != key:
            self._init_rule(self.rule, key)
        self._save_ckpt(runner, score)

    @staticmethod
    def _default_test_fn() -> Callable[..., Any]:
        from hookline.compat.mmcv.engine import multi_gpu_test

        return multi_gpu_test


def _broadcast_batch_norm(model: torch.nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            torch.distributed.broadcast(module.running_var, 0)  # type: ignore[arg-type]
            torch.distributed.broadcast(module.running_mean, 0)  # type: ignore[arg-type]
