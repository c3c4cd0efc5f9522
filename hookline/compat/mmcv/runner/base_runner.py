"""The base of MMCV's two runners: a Hookline runner with flat hook order and a workflow."""

from __future__ import annotations

import copy
import logging
import os.path as osp
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import torch

from hookline import engine
from hookline.arguments import set_arguments
from hookline.checkpoint.parts import restore_hooks, select_rank_state
from hookline.compat.hook_list import HooksInList
from hookline.compat.mmcv.runner.checkpoint import (
    _load_checkpoint,
    find_weights,
    load_checkpoint,
    load_state_dict,
)
from hookline.compat.mmcv.runner.checkpointer import ENGINE_META, MMCVCheckpointer
from hookline.compat.mmcv.runner.dist_utils import get_dist_info
from hookline.compat.mmcv.runner.hooks.hook import Hook
from hookline.compat.mmcv.runner.log_buffer import LogBuffer
from hookline.compat.mmcv.runner.model_wrapper import unwrap
from hookline.compat.mmcv.runner.position import WorkersOfLoaders
from hookline.compat.mmcv.runner.registration import HookRegistration
from hookline.compat.mmcv.runner.utils import get_host_info, get_time_str
from hookline.compat.openmmlab import alias, is_list_of, mkdir_or_exist
from hookline.compat.weights import rename_weights
from hookline.compat.work_dir import WorkDir
from hookline.engine.loop import Loop
from hookline.engine.session import RunSession
from hookline.engine.sites import PER_EPOCH
from hookline.errors import HooklineError
from hookline.optim.groups import momentum_of

Workflow = list[tuple[str, int]]
# Between batches MMCV leaves the index of the last one in `inner_iter`.
BETWEEN_BATCHES = PER_EPOCH | {"before_val_epoch", "after_val_epoch", "after_run"}


class MMCVLoop(Loop):
    """The loop of the engine, without MMCV's hooks at sites that MMCV's runner lacks."""

    _runner: Any

    def call_site(self, site: str) -> None:
        """Call the hooks of a site that lies around epochs."""
        self._runner.call_site(site)


class BaseRunner(HookRegistration, HooksInList, engine.BaseRunner):
    """A runner of a model with `train_step(data, optimizer)` and `val_step`.

    Subclasses have `train`, `val` and `run`. Hooks written for MMCV and those of Hookline can be
    mixed.

    Attributes:
        flow: The entry of the workflow that runs, and how often it has run.
        site: The site whose hooks are running, if it is not one of an iteration.
    """

    # Sites that only Hookline's hooks know, or that MMCV's runner of this kind does not call.
    engine_only_sites: ClassVar[frozenset[str]] = frozenset()
    checkpointer: MMCVCheckpointer
    is_one_epoch: ClassVar[bool] = False  # whether the run ends together with its only epoch

    _iter = alias("iter")  # MMCV's users read and set it
    _epoch = alias("epoch")
    _inner_iter = alias("inner_iter")
    _max_epochs = alias("max_epochs")
    _max_iters = alias("max_iters")
    data_batch = alias("batch")

    def __init__(
        self,
        model: torch.nn.Module,
        batch_processor: Callable[..., Any] | None = None,
        optimizer: torch.optim.Optimizer | dict[str, torch.optim.Optimizer] | None = None,
        work_dir: str | None = None,
        logger: logging.Logger | None = None,
        meta: dict[str, Any] | None = None,
        max_iters: int | None = None,
        max_epochs: int | None = None,
    ) -> None:
        _check(model, batch_processor, optimizer, work_dir, logger)
        check_meta(meta)
        if max_epochs is not None and max_iters is not None:
            raise ValueError("Only one of `max_epochs` or `max_iters` can be set.")
        device = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
        super().__init__(
            model, optimizer=optimizer, work_dir=work_dir, device=device, hook_order="flat"
        )
        self.loop = MMCVLoop(self)
        self.loop.owns_data = False
        self.max_epochs = max_epochs
        self.max_iters = max_iters
        self.loop.iter_limit = max_iters
        self.batch_processor = batch_processor
        self.meta = meta
        self.logger: Any = logger
        self.work_dir: Any = None
        if work_dir is not None:
            self.work_dir = WorkDir(osp.abspath(work_dir))
            mkdir_or_exist(self.work_dir)
        self._model_name = type(getattr(model, "module", model)).__name__
        self._rank, self._world_size = get_dist_info()
        self.timestamp = get_time_str()
        self.mode: str | None = None
        self.data_loader: Any = None
        self.log_buffer = LogBuffer()
        self.checkpointer = MMCVCheckpointer(self)
        self.site = ""
        self.flow = [0, 0]
        self._last_index: int | None = None  # of the batch that was processed last
        self._resumed_hooks: dict[str, Any] = {}  # the checkpoint that the run resumes from
        self._left_over: dict[str, Any] = {}  # its weights that the model does not have yet
        self._continue_at: dict[str, Any] = {}  # its position in the data
        self.workers = WorkersOfLoaders()

    @property
    def model_name(self) -> str:
        return self._model_name

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    def train(self, data_loader: Any, **kwargs: Any) -> None:  # type: ignore[override]
        raise NotImplementedError(f"{type(self).__name__} has no 'train'")

    def val(self, data_loader: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no 'val'")

    def run(self, data_loaders: list[Any], workflow: Workflow, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no 'run'")

    def run_iter(self, data_batch: Any, train_mode: bool, **kwargs: Any) -> None:
        """Run one step of the model; `runner.outputs` is its result."""
        model: Any = self.model
        if self.batch_processor is not None:
            outputs = self.batch_processor(model, data_batch, train_mode=train_mode, **kwargs)
        elif train_mode:
            outputs = model.train_step(data_batch, self.optimizer, **kwargs)
        else:
            outputs = model.val_step(data_batch, self.optimizer, **kwargs)
        self.take_outputs(outputs)
        if train_mode:
            self.call_hook("after_forward")

    def take_outputs(self, outputs: Any) -> None:
        """Keep the result of a step, and its `log_vars` for the loggers."""
        if not isinstance(outputs, dict):
            raise TypeError(
                '"batch_processor()" or "model.train_step()"'
                ' and "model.val_step()" must return a dict'
            )
        if "log_vars" in outputs:
            self.log_buffer.update(outputs["log_vars"], outputs["num_samples"])
        self.outputs = outputs

    def end_optimizer_step(self) -> None:
        """Count a step of the optimizer, and call Hookline's site after it."""
        self.optimizer_steps += 1
        self.call_hook("after_optimizer_step")

    def call_hook(self, fn_name: str, **values: Any) -> None:  # type: ignore[override]
        """Call a method of all hooks: a site, or any other that all of them have."""
        if fn_name not in self.sites.hooks:
            for hook in self.hooks:
                getattr(hook, fn_name)(self)
            return
        set_arguments(self, fn_name, values)
        self._call_hooks(fn_name, without_mmcv=False)

    def call_site(self, site: str) -> None:
        """Call the hooks of a site, without MMCV's hooks at sites that MMCV's runner lacks."""
        self._call_hooks(site, without_mmcv=site in self.engine_only_sites)

    def current_lr(self) -> Any:
        """Return the learning rates of all parameter groups, by name for several optimizers."""
        return self._map_groups(lambda group: group["lr"])

    def current_momentum(self) -> Any:
        """Return the momentum or first beta of all parameter groups; 0 if there is neither."""
        return self._map_groups(lambda group: momentum_of(group) or 0)

    def load_checkpoint(
        self,
        filename: str,
        map_location: Any = "cpu",
        strict: bool = False,
        revise_keys: Any = ((r"^module\.", ""),),
    ) -> dict[str, Any]:
        """Load the weights of a file into the model, and return the whole checkpoint."""
        return load_checkpoint(self.model, filename, map_location, strict, self.logger, revise_keys)

    def resume(
        self, checkpoint: str, resume_optimizer: bool = True, map_location: Any = "default"
    ) -> None:
        """Continue from a checkpoint.

        This restores weights, optimizer and counters. `run` restores hooks, random numbers and the
        position in the data.
        """
        content = _load_checkpoint(
            checkpoint, "cpu" if map_location == "default" else map_location, self.logger
        )
        about = content.get("meta", {})
        if "epoch" not in about or "iter" not in about:
            raise HooklineError(
                f"{checkpoint} holds only weights, so a run cannot resume from it: load them with "
                "runner.load_checkpoint"
            )
        self.epoch = about["epoch"]
        self.iter = about["iter"]
        self.inner_iter = about.get("inner_iter", 0)
        self.optimizer_steps = about.get("optimizer_steps", 0)
        own = self.meta or {}
        messages = {**(own.get("hook_msgs") or {}), **about.get("hook_msgs", {})}
        loaded = {key: value for key, value in about.items() if key not in ENGINE_META}
        self.meta = {**own, **loaded, "hook_msgs": messages}
        if "optimizer" in content and resume_optimizer:
            _load_optimizers(self.optimizer, content["optimizer"])
        weights = rename_weights(find_weights(content))
        known = unwrap(self.model).state_dict()
        self._left_over = {key: value for key, value in weights.items() if key not in known}
        fitting = copy.copy(weights)  # with the versions of its modules
        for key in self._left_over:
            del fitting[key]
        load_state_dict(self.model, fitting, logger=self.logger)
        if "rng" in content:
            content = select_rank_state(content, self.world, self.seed)
        self.loop.mark_resumed(content)
        self._resumed_hooks = content
        self._continue_at = content.get("mmcv", {})
        self.flow = list(self._continue_at.get("flow", [0, 0]))
        self.logger.info("resumed epoch %d, iter %d", self.epoch, self.iter)

    def data_state(self) -> dict[str, Any]:
        """Return the position in the workflow and the data, for a checkpoint."""
        return {"flow": list(self.flow), "workers": self.workers.capture()}

    def _run(
        self, data_loaders: list[Any], workflow: Workflow, loop: Callable[[list[Any]], None]
    ) -> None:
        """Run the loop, with checks before it, and signals, failures and cleanup handled."""
        self._check_workflow(data_loaders, workflow)
        loaders = [self.workers.follow(loader) for loader in data_loaders]
        self.workers.resume(self._continue_at.get("workers", []))
        self.train_loader = None
        for loader, (mode, _) in zip(loaders, workflow, strict=True):
            if mode == "train":
                self.train_loader = loader
                break
        self.logger.info(
            "Start running, host: %s, work_dir: %s", get_host_info(), self.work_dir or "NONE"
        )
        self.logger.info("Hooks will be executed in the following order:\n%s", self.get_hook_info())
        self.stop_reason = None
        if not self.loop.resuming:
            self.flow = [0, 0]
        try:
            with RunSession(self, is_training=True):
                self._begin_run()
                loop(loaders)
                self._end_run()
        finally:
            self.checkpointer.close()

    def _check_workflow(self, data_loaders: list[Any], workflow: Workflow) -> None:
        assert isinstance(data_loaders, list), (
            f"data_loaders must be a list, got {type(data_loaders).__name__}"
        )
        assert is_list_of(workflow, tuple), (
            f"workflow must be a list of tuples such as ('train', 1), got {workflow!r}"
        )
        assert len(data_loaders) == len(workflow), (
            f"{len(data_loaders)} data_loaders for {len(workflow)} entries of the workflow"
        )
        for mode, _ in workflow:
            if not isinstance(mode, str):
                raise TypeError(f"mode in workflow must be a str, but got {type(mode)}")
            if not hasattr(self, mode):
                raise ValueError(f'runner has no method named "{mode}" to run an epoch')

    def _begin_run(self) -> None:
        self.checkpointer.remember_hyperparameters()
        self.sites.costs.start(self)
        self.best.reset()
        self.call_hook("before_run")
        self._take_left_over()
        if self.loop.resuming:
            restore_hooks(self.hooks, self._resumed_hooks)
        self.call_hook("before_train")
        self.loop.begin()

    def _end_run(self) -> None:
        self.loop.end()
        self.stop_reason = self.stop_reason or self.loop.natural_end()
        self.call_hook("after_train")
        self.call_hook("after_run")

    def _entries(
        self, workflow: Workflow, should_continue: Callable[[], bool]
    ) -> Iterator[tuple[int, str]]:
        """Yield the index and mode of each entry of the workflow. A seam follows each of them."""
        first, done = self.flow if self.flow[0] < len(workflow) else (0, 0)
        while should_continue() and self.stop_reason is None:
            for index, (mode, times) in list(enumerate(workflow))[first:]:
                for turn in range(done, times):
                    is_over = mode == "train" and not should_continue()
                    if self.stop_reason is not None or is_over:
                        break
                    self.flow = [index, turn]
                    yield index, mode
                    if self.stop_reason is None:
                        self.flow = [index, turn + 1]
                        # The seams of the last iteration and of its epoch are one.
                        if should_continue() or not self.is_one_epoch:
                            self.loop.settle_if_due()
                done = 0
            first = 0
            if all(mode == "val" for mode, _ in workflow):
                break  # a workflow without training never reaches its end

    def _step(self, data_batch: Any, **kwargs: Any) -> None:
        """Train on one batch."""
        self.loop.begin_iteration(data_batch)
        self.run_iter(self.batch, train_mode=True, **kwargs)
        for call in self.sites.optimize:
            call(self)

    def _finish_resume(self) -> None:
        """Restore hooks and random numbers right before the run continues."""
        self.loop.reapply_state()
        self._continue_at = {}

    def _call_hooks(self, site: str, without_mmcv: bool) -> None:
        outer = self.site
        self.site = site
        try:
            if site in BETWEEN_BATCHES:
                self._call_between_batches(site, without_mmcv)
            else:
                for call in self.sites.calls(site):
                    call(self)
        finally:
            self.site = outer

    def _call_between_batches(self, site: str, without_mmcv: bool) -> None:
        inner_iter = self.inner_iter
        calls = self.sites.calls(site)
        for hook, call in zip(self.sites.hooks[site], calls, strict=True):
            if not isinstance(hook, Hook):
                call(self)
            elif not without_mmcv:
                # MMCV leaves the index of the last batch; Hookline counts the finished ones.
                self.inner_iter = inner_iter if self._last_index is None else self._last_index
                call(self)
                self.inner_iter = inner_iter

    def _take_left_over(self) -> None:
        """Load weights that a hook has added to the model since the resume, such as averages."""
        model = unwrap(self.model)
        left_over, self._left_over = self._left_over, {}
        fitting = {key: value for key, value in left_over.items() if key in model.state_dict()}
        model.load_state_dict(fitting, strict=False)
        unused = [key for key in left_over if key not in fitting]
        if unused:
            self.logger.warning(
                "the checkpoint has weights that the model does not have: %s", ", ".join(unused)
            )

    def _map_groups(self, function: Callable[[dict[str, Any]], Any]) -> Any:
        if self.optimizer is None:
            raise RuntimeError("lr is not applicable because optimizer does not exist.")
        if isinstance(self.optimizer, Mapping):
            return {
                name: [function(group) for group in optimizer.param_groups]
                for name, optimizer in self.optimizer.items()
            }
        return [function(group) for group in self.optimizer.param_groups]


def _load_optimizers(optimizer: Any, state: Any) -> None:
    if isinstance(optimizer, Mapping):
        for name, each in optimizer.items():
            each.load_state_dict(state[name])
    elif optimizer is not None:
        optimizer.load_state_dict(state)


def _check(model: Any, batch_processor: Any, optimizer: Any, work_dir: Any, logger: Any) -> None:
    if batch_processor is None:
        assert hasattr(model, "train_step"), (
            f"{type(model).__name__} has no train_step(data, optimizer); add one, or pass a "
            "batch_processor"
        )
    else:
        if not callable(batch_processor):
            raise TypeError(f"batch_processor must be callable, but got {type(batch_processor)}")
        warnings.warn(
            "batch_processor is deprecated, please implement train_step() and val_step() in the "
            "model instead.",
            DeprecationWarning,
            stacklevel=3,
        )
        inner = unwrap(model)
        if hasattr(inner, "train_step") or hasattr(inner, "val_step"):
            raise RuntimeError(
                "batch_processor and model.train_step()/model.val_step() cannot be both available."
            )
    optimizers = optimizer.values() if isinstance(optimizer, dict) else [optimizer]
    for each in optimizers:
        if each is not None and not isinstance(each, torch.optim.Optimizer):
            raise TypeError(
                "optimizer must be a torch.optim.Optimizer object or dict or None, "
                f"but got {type(each)}"
            )
    if not isinstance(logger, logging.Logger):
        raise TypeError(f"logger must be a logging.Logger object, but got {type(logger)}")
    if work_dir is not None and not isinstance(work_dir, str):
        raise TypeError(f'"work_dir" must be a str or None, but got {type(work_dir)}')


def check_meta(meta: Any) -> None:
    """Raise TypeError unless additions to the meta data are a dict or None."""
    if meta is not None and not isinstance(meta, dict):
        raise TypeError(f"meta must be a dict or None, but got {type(meta)}")
