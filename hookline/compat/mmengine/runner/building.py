"""How a runner makes its parts from configs; each method may be overridden."""

from __future__ import annotations

import copy
import os.path as osp
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from hookline.compat.mmengine.dataset import worker_init_fn as default_worker_init_fn
from hookline.compat.mmengine.device import get_device
from hookline.compat.mmengine.dist import get_rank, get_world_size
from hookline.compat.mmengine.evaluator import Evaluator
from hookline.compat.mmengine.logging import MessageHub, MMLogger
from hookline.compat.mmengine.model import MMDistributedDataParallel, is_model_wrapper, revert_sync_batchnorm
from hookline.compat.mmengine.optim import OptimWrapper, OptimWrapperDict, _ParamScheduler, build_optim_wrapper
from hookline.compat.mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    EVALUATOR,
    FUNCTIONS,
    LOG_PROCESSORS,
    LOOPS,
    MODEL_WRAPPERS,
    MODELS,
    OPTIM_WRAPPERS,
    PARAM_SCHEDULERS,
    VISUALIZERS,
)
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.log_processor import LogProcessor
from hookline.compat.mmengine.runner.loops import EpochBasedTrainLoop, IterBasedTrainLoop, TestLoop, ValLoop
from hookline.compat.mmengine.visualization import Visualizer


class Building:
    """The `build_…` methods of the runner."""

    def build_logger(self: Any, log_level: int | str = "INFO", log_file: str | None = None, **kwargs: Any) -> MMLogger:
        file = log_file or osp.join(self._log_dir, f"{self.timestamp}.log")
        options = {"name": self._experiment_name, "file_mode": "a", **kwargs}
        return MMLogger.get_instance(log_level=log_level, log_file=file, **options)

    def build_message_hub(self: Any, message_hub: dict[str, Any] | None = None) -> MessageHub:
        return MessageHub.get_instance(**{"name": self._experiment_name, **(message_hub or {})})

    def build_visualizer(self: Any, visualizer: Any = None) -> Any:
        if isinstance(visualizer, Visualizer):
            return visualizer
        if visualizer is not None and not isinstance(visualizer, dict):
            raise TypeError(f"visualizer should be Visualizer object, a dict or None, but got {visualizer}")
        default = {"type": "Visualizer", "vis_backends": [{"type": "LocalVisBackend"}]} if visualizer is None else visualizer
        return VISUALIZERS.build({"name": self._experiment_name, "save_dir": self._log_dir, **default})

    def build_model(self: Any, model: Any) -> nn.Module:
        if not isinstance(model, (nn.Module, dict)):
            raise TypeError(f"model should be a nn.Module object or dict, but got {model}")
        return model if isinstance(model, nn.Module) else MODELS.build(model)

    def wrap_model(self: Any, model_wrapper_cfg: Any, model: nn.Module) -> nn.Module:
        """The model on its device; in a distributed job in its wrapper."""
        if is_model_wrapper(model):
            return model
        model = model.to(get_device())
        if not self.distributed:
            return revert_sync_batchnorm(model)
        if self.cfg.get("sync_bn") == "torch":
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else None
        options: dict[str, Any] = {"device_ids": devices, "broadcast_buffers": False}
        if model_wrapper_cfg is None:
            unused = self.cfg.get("find_unused_parameters", False)
            return MMDistributedDataParallel(module=model, find_unused_parameters=unused, **options)
        config = {"type": "MMDistributedDataParallel", **model_wrapper_cfg}
        return MODEL_WRAPPERS.build(config, default_args={"module": model, **options})  # type: ignore[no-any-return]

    def build_optim_wrapper(self: Any, optim_wrapper: Any) -> Any:
        if isinstance(optim_wrapper, OptimWrapper):
            return optim_wrapper
        if not hasattr(optim_wrapper, "keys"):
            raise TypeError(f"optimizer wrapper should be an OptimWrapper object or dict, but got {optim_wrapper}")
        optimizer = optim_wrapper.get("optimizer", None)
        if isinstance(optimizer, torch.optim.Optimizer):
            return OPTIM_WRAPPERS.build({"type": "OptimWrapper", **optim_wrapper})
        if optimizer is not None or "constructor" in optim_wrapper:
            return build_optim_wrapper(self.model, optim_wrapper)
        for name, each in optim_wrapper.items():
            if not isinstance(each, OptimWrapper):
                raise ValueError(f'each item must be an OptimWrapper when there is no "optimizer" or "constructor", but got {name}={each}')
        return OptimWrapperDict(**OrderedDict(optim_wrapper.items()))

    def build_param_scheduler(self: Any, scheduler: Any) -> Any:
        """A list of schedulers, or for several optimizers a dict of lists."""
        if not isinstance(self.optim_wrapper, OptimWrapper):
            raise AssertionError("`build_optim_wrapper` should be called before `build_param_scheduler`")
        if not isinstance(self.optim_wrapper, OptimWrapperDict):
            return self._build_param_scheduler(scheduler, self.optim_wrapper)
        named = isinstance(scheduler, dict) and "type" not in scheduler
        wrappers = self.optim_wrapper.items()
        return {name: self._build_param_scheduler(scheduler[name] if named else scheduler, wrapper) for name, wrapper in wrappers}

    def _build_param_scheduler(self: Any, scheduler: Any, optim_wrapper: OptimWrapper) -> list[Any]:
        built = []
        for each in scheduler if isinstance(scheduler, Sequence) else [scheduler]:
            if isinstance(each, dict):
                options = copy.deepcopy(each)
                if isinstance(self._train_loop, BaseLoop):
                    options.setdefault("end", self.max_epochs if options.get("by_epoch", True) else self.max_iters)
                defaults = {"optimizer": optim_wrapper, "epoch_length": len(self.train_dataloader)}
                built.append(PARAM_SCHEDULERS.build(options, default_args=defaults))
            elif isinstance(each, _ParamScheduler):
                built.append(each)
            else:
                raise TypeError(f"scheduler should be a _ParamScheduler object or dict, but got {each}")
        return built

    def build_evaluator(self: Any, evaluator: Any) -> Any:
        if isinstance(evaluator, Evaluator):
            return evaluator
        if isinstance(evaluator, dict) and "metrics" in evaluator:
            return EVALUATOR.build({"type": "Evaluator", **evaluator})
        if isinstance(evaluator, (dict, list)):
            return Evaluator(evaluator)
        raise TypeError(f"evaluator should be one of dict, list of dict, and Evaluator, but got {evaluator}")

    @staticmethod
    def build_dataloader(dataloader: Any, seed: int | None = None, diff_rank_seed: bool = False) -> DataLoader[Any]:
        """A loader from `dict(dataset=…, sampler=…, batch_size=…, …)`."""
        if isinstance(dataloader, DataLoader):
            return dataloader
        options = copy.copy(dict(dataloader.items()))
        dataset = options.pop("dataset")
        if isinstance(dataset, dict):
            dataset = DATASETS.build(copy.deepcopy(dataset))
        if hasattr(dataset, "full_init"):
            dataset.full_init()
        batches = options.pop("num_batch_per_epoch", None)
        if batches is not None:
            dataset = _SlicedDataset(dataset, batches * options["batch_size"] * get_world_size())
        sampler = options.pop("sampler")
        if isinstance(sampler, dict):
            sampler = DATA_SAMPLERS.build(sampler, default_args={"dataset": dataset, "seed": None if diff_rank_seed else seed})
        batch_sampler = options.pop("batch_sampler", None)
        if isinstance(batch_sampler, dict):
            batch_sampler = DATA_SAMPLERS.build(batch_sampler, default_args={"sampler": sampler, "batch_size": options.pop("batch_size")})
        return DataLoader(
            dataset=dataset,
            sampler=sampler if batch_sampler is None else None,
            batch_sampler=batch_sampler,
            worker_init_fn=_worker_init_fn(options, seed),
            collate_fn=_function(options.pop("collate_fn", {"type": "pseudo_collate"})),
            **options,
        )

    def build_train_loop(self: Any, loop: Any) -> BaseLoop:
        if isinstance(loop, BaseLoop):
            return loop
        options = _loop_options(loop, "train")
        if "type" in options and "by_epoch" in options:
            raise RuntimeError("Only one of `type` or `by_epoch` can exist in `loop_cfg`.")
        given = {"runner": self, "dataloader": self._train_dataloader}
        if "type" in options:
            return LOOPS.build(options, default_args=given)  # type: ignore[no-any-return]
        kind = EpochBasedTrainLoop if options.pop("by_epoch") else IterBasedTrainLoop
        return kind(**options, **given)

    def build_val_loop(self: Any, loop: Any) -> BaseLoop:
        return self._build_evaluation_loop(loop, ValLoop, self._val_dataloader, self._val_evaluator)  # type: ignore[no-any-return]

    def build_test_loop(self: Any, loop: Any) -> BaseLoop:
        return self._build_evaluation_loop(loop, TestLoop, self._test_dataloader, self._test_evaluator)  # type: ignore[no-any-return]

    def _build_evaluation_loop(self: Any, loop: Any, default: type, dataloader: Any, evaluator: Any) -> BaseLoop:
        if isinstance(loop, BaseLoop):
            return loop
        options = _loop_options(loop, default.__name__)
        given = {"runner": self, "dataloader": dataloader, "evaluator": evaluator}
        return LOOPS.build({"type": default, **options}, default_args=given)  # type: ignore[no-any-return]

    def build_log_processor(self: Any, log_processor: Any) -> Any:
        if isinstance(log_processor, LogProcessor):
            return log_processor
        if not isinstance(log_processor, dict):
            raise TypeError(f"log processor should be a LogProcessor object or dict, but got {log_processor}")
        return LOG_PROCESSORS.build({"type": "LogProcessor", **log_processor})


class _SlicedDataset:
    """The beginning of a data set."""

    def __init__(self, dataset: Any, length: int) -> None:
        self._dataset, self._length = dataset, length

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[idx]

    def __len__(self) -> int:
        return self._length


def _loop_options(loop: Any, name: str) -> dict[str, Any]:
    if not isinstance(loop, dict):
        raise TypeError(f"{name} loop should be a Loop object or dict, but got {loop}")
    return copy.deepcopy(dict(loop))


def _function(config: Any) -> Any:
    """A function given by `dict(type=name or function, arguments…)`, or as such."""
    if not isinstance(config, dict):
        return config
    options = dict(config)
    kind = options.pop("type")
    function = FUNCTIONS.get(kind) if isinstance(kind, str) else kind
    if not callable(function):
        raise TypeError(f"type should be the name of a function or one, but got {kind!r}")
    return partial(function, **options)


def _worker_init_fn(options: dict[str, Any], seed: int | None) -> Any:
    if "worker_init_fn" in options:
        return _function(options.pop("worker_init_fn"))
    quiet = options.pop("disable_subprocess_warning", False)
    if seed is None:
        return None
    workers: Any = options.get("num_workers")
    return partial(default_worker_init_fn, num_workers=workers, rank=get_rank(), seed=seed, disable_subprocess_warning=quiet)
