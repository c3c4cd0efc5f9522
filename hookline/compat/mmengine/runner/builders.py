"""Build the parts of a runner from configs. A subclass may override each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from hookline.compat.mmengine.dataset import worker_init_fn
from hookline.compat.mmengine.device import get_device
from hookline.compat.mmengine.dist import get_rank
from hookline.compat.mmengine.evaluator import Evaluator
from hookline.compat.mmengine.model import MMDistributedDataParallel, is_model_wrapper
from hookline.compat.mmengine.optim import OptimWrapper, build_optim_wrapper
from hookline.compat.mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    FUNCTIONS,
    LOOPS,
    MODELS,
    PARAM_SCHEDULERS,
)
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
)
from hookline.compat.persistent_workers import follow_workers


class RunnerBuilders:
    """The `build_…` methods of the runner. Each returns an object that was built already."""

    def build_model(self, model: nn.Module | Mapping[str, Any]) -> nn.Module:
        built: nn.Module = model if isinstance(model, nn.Module) else MODELS.build(model)
        return built

    def wrap_model(self: Any, model: nn.Module) -> nn.Module:
        """Move the model to its device, and wrap it in a distributed job."""
        if is_model_wrapper(model):
            return model
        model = model.to(get_device())
        if not self.distributed:
            return model
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else None
        return MMDistributedDataParallel(model, device_ids=devices, broadcast_buffers=False)

    def build_optim_wrapper(self: Any, optim_wrapper: Any) -> OptimWrapper:
        if isinstance(optim_wrapper, OptimWrapper):
            return optim_wrapper
        built: OptimWrapper = build_optim_wrapper(self.model, optim_wrapper)
        return built

    def build_param_scheduler(self: Any, scheduler: Any) -> list[Any]:
        """Build a list of schedulers, from one or several configs."""
        built = []
        for given in scheduler if isinstance(scheduler, Sequence) else [scheduler]:
            if not isinstance(given, Mapping):
                built.append(given)
                continue
            end = self.max_epochs if given.get("by_epoch", True) else self.max_iters
            defaults = {"optimizer": self.optim_wrapper, "end": end}
            built.append(PARAM_SCHEDULERS.build(given, default_args=defaults))
        return built

    def build_evaluator(self, evaluator: Any) -> Evaluator:
        return evaluator if isinstance(evaluator, Evaluator) else Evaluator(evaluator)

    @staticmethod
    def build_dataloader(
        dataloader: Any, seed: int | None = None, diff_rank_seed: bool = False
    ) -> DataLoader[Any]:
        """Build a loader from `dict(dataset=…, sampler=…, batch_size=…, …)`."""
        if isinstance(dataloader, DataLoader):
            return dataloader
        options = dict(dataloader)
        dataset = options.pop("dataset")
        if isinstance(dataset, Mapping):
            dataset = DATASETS.build(dataset)
        sampler = options.pop("sampler")
        if isinstance(sampler, Mapping):
            defaults = {"dataset": dataset, "seed": None if diff_rank_seed else seed}
            sampler = DATA_SAMPLERS.build(sampler, default_args=defaults)
        collate = options.pop("collate_fn", {"type": "pseudo_collate"})
        if isinstance(collate, Mapping):
            arguments = dict(collate)
            collate = partial(FUNCTIONS.get(arguments.pop("type")), **arguments)
        if seed is not None:
            workers = options.get("num_workers", 0)
            seed_worker = partial(worker_init_fn, num_workers=workers, rank=get_rank(), seed=seed)
            options.setdefault("worker_init_fn", seed_worker)
        return follow_workers(DataLoader(dataset, sampler=sampler, collate_fn=collate, **options))

    def build_train_loop(self: Any, loop: Any) -> BaseLoop:
        default = None
        if isinstance(loop, Mapping) and "type" not in loop:
            loop = dict(loop)
            default = EpochBasedTrainLoop if loop.pop("by_epoch") else IterBasedTrainLoop
        return _build_loop(loop, default, runner=self, dataloader=self._train_dataloader)

    def build_val_loop(self: Any, loop: Any) -> BaseLoop:
        parts = {"dataloader": self._val_dataloader, "evaluator": self._val_evaluator}
        return _build_loop(loop, ValLoop, runner=self, **parts)

    def build_test_loop(self: Any, loop: Any) -> BaseLoop:
        parts = {"dataloader": self._test_dataloader, "evaluator": self._test_evaluator}
        return _build_loop(loop, TestLoop, runner=self, **parts)


def _build_loop(loop: Any, default: type | None, **parts: Any) -> BaseLoop:
    if isinstance(loop, BaseLoop):
        return loop
    built: BaseLoop = LOOPS.build({"type": default, **loop}, default_args=parts)
    return built
