"""Build the parts of a runner from configs. A subclass may override each method."""

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
from hookline.compat.mmengine.model import (
    MMDistributedDataParallel,
    is_model_wrapper,
    revert_sync_batchnorm,
)
from hookline.compat.mmengine.optim import (
    OptimWrapper,
    OptimWrapperDict,
    _ParamScheduler,
    build_optim_wrapper,
)
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
from hookline.compat.mmengine.runner.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
)
from hookline.compat.mmengine.visualization import Visualizer


class RunnerBuilders:
    """The `build_…` methods of the runner."""

    def build_logger(
        self: Any, log_level: int | str = "INFO", log_file: str | None = None, **kwargs: Any
    ) -> MMLogger:
        file = log_file or osp.join(self._log_dir, f"{self.timestamp}.log")
        options = {"name": self._experiment_name, "file_mode": "a", **kwargs}
        return MMLogger.get_instance(log_level=log_level, log_file=file, **options)

    def build_message_hub(self: Any, message_hub: dict[str, Any] | None = None) -> MessageHub:
        return MessageHub.get_instance(**{"name": self._experiment_name, **(message_hub or {})})

    def build_visualizer(self: Any, visualizer: Any = None) -> Any:
        if isinstance(visualizer, Visualizer):
            return visualizer
        if visualizer is not None and not isinstance(visualizer, dict):
            raise TypeError(
                f"visualizer should be Visualizer object, a dict or None, but got {visualizer}"
            )
        if visualizer is None:
            visualizer = {"type": "Visualizer", "vis_backends": [{"type": "LocalVisBackend"}]}
        defaults = {"name": self._experiment_name, "save_dir": self._log_dir}
        return VISUALIZERS.build({**defaults, **visualizer})

    def build_model(self: Any, model: Any) -> nn.Module:
        if not isinstance(model, (nn.Module, dict)):
            raise TypeError(f"model should be a nn.Module object or dict, but got {model}")
        return model if isinstance(model, nn.Module) else MODELS.build(model)

    def wrap_model(self: Any, model_wrapper_cfg: Any, model: nn.Module) -> nn.Module:
        """Move the model to its device, and wrap it in a distributed job."""
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
        defaults = {"module": model, **options}
        wrapped: nn.Module = MODEL_WRAPPERS.build(config, default_args=defaults)
        return wrapped

    def build_optim_wrapper(self: Any, optim_wrapper: Any) -> Any:
        if isinstance(optim_wrapper, OptimWrapper):
            return optim_wrapper
        if not hasattr(optim_wrapper, "keys"):
            raise TypeError(
                "optimizer wrapper should be an OptimWrapper object or dict, "
                f"but got {optim_wrapper}"
            )
        optimizer = optim_wrapper.get("optimizer", None)
        if isinstance(optimizer, torch.optim.Optimizer):
            return OPTIM_WRAPPERS.build({"type": "OptimWrapper", **optim_wrapper})
        if optimizer is not None or "constructor" in optim_wrapper:
            return build_optim_wrapper(self.model, optim_wrapper)
        for name, wrapper in optim_wrapper.items():
            if not isinstance(wrapper, OptimWrapper):
                raise ValueError(
                    'each item must be an OptimWrapper when there is no "optimizer" or '
                    f'"constructor", but got {name}={wrapper}'
                )
        return OptimWrapperDict(**OrderedDict(optim_wrapper.items()))

    def build_param_scheduler(self: Any, scheduler: Any) -> Any:
        """Build a list of schedulers, or a dict of lists for several optimizers."""
        if not isinstance(self.optim_wrapper, OptimWrapper):
            raise AssertionError(
                "`build_optim_wrapper` should be called before `build_param_scheduler`"
            )
        if not isinstance(self.optim_wrapper, OptimWrapperDict):
            return self._build_param_scheduler(scheduler, self.optim_wrapper)
        has_names = isinstance(scheduler, dict) and "type" not in scheduler
        built = {}
        for name, wrapper in self.optim_wrapper.items():
            given = scheduler[name] if has_names else scheduler
            built[name] = self._build_param_scheduler(given, wrapper)
        return built

    def _build_param_scheduler(self: Any, scheduler: Any, optim_wrapper: OptimWrapper) -> list[Any]:
        schedulers = scheduler if isinstance(scheduler, Sequence) else [scheduler]
        built = []
        for given in schedulers:
            if isinstance(given, dict):
                built.append(self._build_one_scheduler(given, optim_wrapper))
            elif isinstance(given, _ParamScheduler):
                built.append(given)
            else:
                raise TypeError(
                    f"scheduler should be a _ParamScheduler object or dict, but got {given}"
                )
        return built

    def _build_one_scheduler(self: Any, given: dict[str, Any], optim_wrapper: OptimWrapper) -> Any:
        options = copy.deepcopy(given)
        if isinstance(self._train_loop, BaseLoop):
            end = self.max_epochs if options.get("by_epoch", True) else self.max_iters
            options.setdefault("end", end)
        defaults = {"optimizer": optim_wrapper, "epoch_length": len(self.train_dataloader)}
        return PARAM_SCHEDULERS.build(options, default_args=defaults)

    def build_evaluator(self: Any, evaluator: Any) -> Any:
        if isinstance(evaluator, Evaluator):
            return evaluator
        if isinstance(evaluator, dict) and "metrics" in evaluator:
            return EVALUATOR.build({"type": "Evaluator", **evaluator})
        if isinstance(evaluator, (dict, list)):
            return Evaluator(evaluator)
        raise TypeError(
            f"evaluator should be one of dict, list of dict, and Evaluator, but got {evaluator}"
        )

    @staticmethod
    def build_dataloader(
        dataloader: Any, seed: int | None = None, diff_rank_seed: bool = False
    ) -> DataLoader[Any]:
        """Build a loader from `dict(dataset=…, sampler=…, batch_size=…, …)`."""
        if isinstance(dataloader, DataLoader):
            return dataloader
        options = copy.copy(dict(dataloader.items()))
        dataset = _build_dataset(options)
        sampler = options.pop("sampler")
        if isinstance(sampler, dict):
            defaults = {"dataset": dataset, "seed": None if diff_rank_seed else seed}
            sampler = DATA_SAMPLERS.build(sampler, default_args=defaults)
        batch_sampler = options.pop("batch_sampler", None)
        if isinstance(batch_sampler, dict):
            defaults = {"sampler": sampler, "batch_size": options.pop("batch_size")}
            batch_sampler = DATA_SAMPLERS.build(batch_sampler, default_args=defaults)
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
            built: BaseLoop = LOOPS.build(options, default_args=given)
            return built
        kind = EpochBasedTrainLoop if options.pop("by_epoch") else IterBasedTrainLoop
        return kind(**options, **given)

    def build_val_loop(self: Any, loop: Any) -> BaseLoop:
        parts = {"dataloader": self._val_dataloader, "evaluator": self._val_evaluator}
        return _build_evaluation_loop(loop, ValLoop, {"runner": self, **parts})

    def build_test_loop(self: Any, loop: Any) -> BaseLoop:
        parts = {"dataloader": self._test_dataloader, "evaluator": self._test_evaluator}
        return _build_evaluation_loop(loop, TestLoop, {"runner": self, **parts})

    def build_log_processor(self: Any, log_processor: Any) -> Any:
        if isinstance(log_processor, LogProcessor):
            return log_processor
        if not isinstance(log_processor, dict):
            raise TypeError(
                f"log processor should be a LogProcessor object or dict, but got {log_processor}"
            )
        return LOG_PROCESSORS.build({"type": "LogProcessor", **log_processor})


class _SlicedDataset:
    """The first samples of a data set."""

    def __init__(self, dataset: Any, length: int) -> None:
        self._dataset = dataset
        self._length = length

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[idx]

    def __len__(self) -> int:
        return self._length


def _build_dataset(options: dict[str, Any]) -> Any:
    """Build the data set of a loader, and remove its options."""
    dataset = options.pop("dataset")
    if isinstance(dataset, dict):
        dataset = DATASETS.build(copy.deepcopy(dataset))
    if hasattr(dataset, "full_init"):
        dataset.full_init()
    batches = options.pop("num_batch_per_epoch", None)
    if batches is None:
        return dataset
    return _SlicedDataset(dataset, batches * options["batch_size"] * get_world_size())


def _build_evaluation_loop(loop: Any, default: type, parts: dict[str, Any]) -> BaseLoop:
    if isinstance(loop, BaseLoop):
        return loop
    options = _loop_options(loop, default.__name__)
    built: BaseLoop = LOOPS.build({"type": default, **options}, default_args=parts)
    return built


def _loop_options(loop: Any, name: str) -> dict[str, Any]:
    if not isinstance(loop, dict):
        raise TypeError(f"{name} loop should be a Loop object or dict, but got {loop}")
    return copy.deepcopy(dict(loop))


def _function(config: Any) -> Any:
    """Return a function, which a config gives by name or as an object, with its arguments."""
    if not isinstance(config, dict):
        return config
    options = dict(config)
    kind = options.pop("type")
    function = FUNCTIONS.get(kind) if isinstance(kind, str) else kind
    if not callable(function):
        raise TypeError(f"type should be a function or the name of one, but got {kind!r}")
    return partial(function, **options)


def _worker_init_fn(options: dict[str, Any], seed: int | None) -> Any:
    if "worker_init_fn" in options:
        return _function(options.pop("worker_init_fn"))
    disable_warning = options.pop("disable_subprocess_warning", False)
    if seed is None:
        return None
    workers: Any = options.get("num_workers")
    return partial(
        default_worker_init_fn,
        num_workers=workers,
        rank=get_rank(),
        seed=seed,
        disable_subprocess_warning=disable_warning,
    )
