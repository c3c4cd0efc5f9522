"""What MMCV's two runners share: a Hookline runner with flat hook order whose loops are driven by a workflow."""

from __future__ import annotations

import logging
import os.path as osp
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from hookline import engine
from hookline.compat.mmcv.parallel import is_module_wrapper
from hookline.compat.mmcv.runner.checkpoint import _load_checkpoint, load_checkpoint, load_state_dict, revised, weights_of
from hookline.compat.mmcv.runner.dist_utils import get_dist_info
from hookline.compat.mmcv.runner.log_buffer import LogBuffer
from hookline.compat.mmcv.runner.registering import Registering
from hookline.compat.mmcv.runner.saving import ENGINE_META, Saving
from hookline.compat.mmcv.runner.utils import get_host_info, get_time_str
from hookline.compat.mmcv.utils.logging import get_logger
from hookline.compat.mmcv.utils.misc import is_list_of, mkdir_or_exist
from hookline.engine.capture import of_this_process, restore_hooks, restore_rng
from hookline.engine.run import Run
from hookline.errors import HooklineError
from hookline.optim.groups import momentum_of


def _alias(name: str) -> Any:
    """MMCV's own code reads and sets `_iter` and the like."""

    def put(self: Any, value: Any = None) -> None:
        setattr(self, name, value)

    return property(lambda self: getattr(self, name), put, put)


class WorkDir(str):
    """The work directory as MMCV has it, text; Hookline's hooks may treat it as a path."""

    def __truediv__(self, other: str) -> Path:
        return Path(self) / other

    def __getattr__(self, name: str) -> Any:
        return getattr(Path(self), name)


class BaseRunner(Registering, engine.BaseRunner):
    """A runner of a model with `train_step(data, optimizer)` and `val_step`; subclasses have `train`, `val` and `run`."""

    _iter, _epoch, _inner_iter = _alias("iter"), _alias("epoch"), _alias("inner_iter")
    _max_epochs, _max_iters, data_batch = _alias("max_epochs"), _alias("max_iters"), _alias("batch")

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
        _check(model, batch_processor, optimizer, logger, meta)
        if max_epochs is not None and max_iters is not None:
            raise ValueError("Only one of `max_epochs` or `max_iters` can be set.")
        device = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
        super().__init__(model, optimizer=optimizer, work_dir=work_dir, device=device, hook_order="flat")
        del self.resume  # the engine's option; here it is a method
        self.max_epochs, self.max_iters = max_epochs, max_iters
        self.batch_processor, self.meta = batch_processor, meta
        self.logger = logger if logger is not None else get_logger("mmcv")
        self.work_dir = None if work_dir is None else WorkDir(osp.abspath(work_dir))  # type: ignore[assignment]
        if work_dir is not None:
            mkdir_or_exist(self.work_dir)
        self._model_name = type(model.module if hasattr(model, "module") else model).__name__
        self._rank, self._world_size = get_dist_info()
        self.timestamp = get_time_str()
        self.mode: str | None = None
        self.data_loader: Any = None
        self.log_buffer = LogBuffer()
        self.saving = Saving(self)
        self.site = ""  # whose hooks are running
        self.flow = [0, 0]  # which entry of the workflow, and how often it has run
        self._left_over: dict[str, Any] = {}  # weights of a checkpoint that the model had no place for yet
        self._continue_at: dict[str, Any] = {}  # where in its data a resumed run goes on

    @property
    def model_name(self) -> str:
        return self._model_name

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    @property
    def _hooks(self) -> list[Any]:
        return self.hooks

    def train(self, data_loader: Any, **kwargs: Any) -> None:  # type: ignore[override]
        raise NotImplementedError(f"{type(self).__name__} has no 'train'")

    def val(self, data_loader: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no 'val'")

    def run(self, data_loaders: list[Any], workflow: list[tuple[str, int]], **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no 'run'")

    def run_iter(self, data_batch: Any, train_mode: bool, **kwargs: Any) -> None:
        """One step of the model; `runner.outputs` is what it returned."""
        if self.batch_processor is not None:
            outputs = self.batch_processor(self.model, data_batch, train_mode=train_mode, **kwargs)
        elif train_mode:
            outputs = self.model.train_step(data_batch, self.optimizer, **kwargs)  # type: ignore[operator]
        else:
            outputs = self.model.val_step(data_batch, self.optimizer, **kwargs)  # type: ignore[operator]
        self.take_outputs(outputs)
        if train_mode:
            self.call_hook("after_forward")

    def take_outputs(self, outputs: Any) -> None:
        """Keep what a step has returned, and its `log_vars` for the loggers."""
        if not isinstance(outputs, dict):
            raise TypeError('"batch_processor()" or "model.train_step()" and "model.val_step()" must return a dict')
        if "log_vars" in outputs:
            self.log_buffer.update(outputs["log_vars"], outputs["num_samples"])
        self.outputs = outputs

    def call_hook(self, fn_name: str, **values: Any) -> None:  # type: ignore[override]
        """Call the hooks' methods of a name: those of the sites, or any other that all hooks have."""
        outer, self.site = self.site, fn_name
        try:
            if fn_name in self.sites.plan:
                super().call_hook(fn_name, **values)
            else:
                for hook in self.hooks:
                    getattr(hook, fn_name)(self)
        finally:
            self.site = outer

    def current_lr(self) -> Any:
        """The learning rates of all parameter groups, by name where there are several optimizers."""
        return self._of_groups(lambda group: group["lr"])

    def current_momentum(self) -> Any:
        """The same of momentum, or of the first beta; 0 where there is neither."""
        return self._of_groups(lambda group: momentum_of(group) or 0)

    def load_checkpoint(
        self, filename: str, map_location: Any = "cpu", strict: bool = False, revise_keys: Any = ((r"^module\.", ""),)
    ) -> dict[str, Any]:
        """Load the weights of a file into the model; what else is in it is returned."""
        return load_checkpoint(self.model, filename, map_location, strict, self.logger, revise_keys)

    def resume(self, checkpoint: str, resume_optimizer: bool = True, map_location: Any = "default") -> None:  # type: ignore[override]
        """Go on where a checkpoint was taken: weights, optimizer and counters now, hooks, random numbers and data in `run`."""
        content = _load_checkpoint(checkpoint, "cpu" if map_location == "default" else map_location, self.logger)
        about = content.get("meta", {})
        if "epoch" not in about or "iter" not in about:
            raise HooklineError(f"{checkpoint} holds weights alone: use runner.load_checkpoint, there is nothing to resume")
        self.epoch, self.iter = about["epoch"], about["iter"]
        self.inner_iter, self.optimizer_steps = about.get("inner_iter", 0), about.get("optimizer_steps", 0)
        messages = {**((self.meta or {}).get("hook_msgs") or {}), **about.get("hook_msgs", {})}
        self.meta = {**(self.meta or {}), **{key: value for key, value in about.items() if key not in ENGINE_META}, "hook_msgs": messages}
        if "optimizer" in content and resume_optimizer:
            _load_optimizers(self.optimizer, content["optimizer"])
        weights, own = revised(weights_of(content)), _unwrapped(self.model).state_dict()
        self._left_over = {key: value for key, value in weights.items() if key not in own}
        load_state_dict(self.model, {key: value for key, value in weights.items() if key in own}, logger=self.logger)
        self._resumed_from = of_this_process(self, content) if "rng" in content else content
        self._continue_at = content.get("mmcv", {})
        self.flow = list(self._continue_at.get("flow", [0, 0]))
        self.logger.info("resumed epoch %d, iter %d", self.epoch, self.iter)

    def place(self) -> dict[str, Any]:
        """Where the run is in its workflow and its data, for a checkpoint."""
        return {"flow": list(self.flow)}

    # What the two loops share.

    def _run(self, data_loaders: list[Any], workflow: list[tuple[str, int]], loop: Callable[[], None]) -> None:
        """Everything around the loop: checks, what is told, and what holds whether it fails or not."""
        assert isinstance(data_loaders, list), f"data_loaders must be a list, got {type(data_loaders).__name__}"
        assert is_list_of(workflow, tuple), f"workflow must be a list of tuples such as ('train', 1), got {workflow!r}"
        assert len(data_loaders) == len(workflow), f"{len(data_loaders)} data_loaders for {len(workflow)} entries of the workflow"
        for mode, _ in workflow:
            if not isinstance(mode, str):
                raise TypeError(f"mode in workflow must be a str, but got {type(mode)}")
            if not hasattr(self, mode):
                raise ValueError(f'runner has no method named "{mode}" to run an epoch')
        self.train_loader = next((loader for loader, (mode, _) in zip(data_loaders, workflow, strict=True) if mode == "train"), None)
        self.logger.info("Start running, host: %s, work_dir: %s", get_host_info(), self.work_dir or "NONE")
        self.logger.info("Hooks will be executed in the following order:\n%s", self.get_hook_info())
        self.stop_reason = None
        if not self.resuming:
            self.flow = [0, 0]
        try:
            with Run(self, graceful=True):
                self.call_hook("before_run")
                self._take_left_over()
                if self._resumed_from is not None:
                    restore_hooks(self, self._resumed_from)
                loop()
                self.call_hook("after_run")
        finally:
            self.saving.close()

    def _entries(self, workflow: list[tuple[str, int]], goes_on: Callable[[], bool]) -> Iterator[tuple[int, str]]:
        """What to run next, as index and mode, pass by pass through the workflow; after each one there is a seam."""
        first, done = self.flow if self.flow[0] < len(workflow) else (0, 0)
        while goes_on() and self.stop_reason is None:
            for index, (mode, times) in list(enumerate(workflow))[first:]:
                for turn in range(done, times):
                    if self.stop_reason is not None or (mode == "train" and not goes_on()):
                        break
                    self.flow = [index, turn]
                    yield index, mode
                    if self.stop_reason is None:
                        self.flow = [index, turn + 1]
                        self._settle(self._within())
                done = 0
            first = 0
            if all(mode == "val" for mode, _ in workflow):
                break  # it would never come to an end

    def _within(self) -> int:
        """How many batches of an epoch that goes on are done, when an entry of the workflow is."""
        return 0

    def finish_resume(self) -> None:
        """The last act of resuming, right before the run goes on."""
        if self._resumed_from is not None:
            checkpoint, self._resumed_from, self._continue_at = self._resumed_from, None, {}
            restore_hooks(self, checkpoint)
            if "rng" in checkpoint:
                restore_rng(checkpoint["rng"])

    def _settle(self, inner_iter: int = 0) -> None:
        """The seam: what hooks have asked for is done; `inner_iter` batches of the epoch are."""
        if self.seam.pending:
            kept, self.inner_iter = self.inner_iter, inner_iter
            try:
                self.seam.settle(self)
            finally:
                self.inner_iter = kept

    def _take_left_over(self) -> None:
        """Weights for which a hook has made place since the checkpoint was loaded, such as averages."""
        model = _unwrapped(self.model)
        left_over, self._left_over = self._left_over, {}
        fitting = {key: value for key, value in left_over.items() if key in model.state_dict()}
        model.load_state_dict(fitting, strict=False)
        if lost := [key for key in left_over if key not in fitting]:
            self.logger.warning("the checkpoint has weights that nothing here has a place for: %s", ", ".join(lost))

    def _of_groups(self, function: Callable[[dict[str, Any]], Any]) -> Any:
        if self.optimizer is None:
            raise RuntimeError("lr is not applicable because optimizer does not exist.")
        if isinstance(self.optimizer, Mapping):
            return {name: [function(group) for group in optimizer.param_groups] for name, optimizer in self.optimizer.items()}
        return [function(group) for group in self.optimizer.param_groups]


def _unwrapped(model: Any) -> torch.nn.Module:
    return model.module if is_module_wrapper(model) else model  # type: ignore[no-any-return]


def _load_optimizers(optimizer: Any, state: Any) -> None:
    if isinstance(optimizer, Mapping):
        for name, each in optimizer.items():
            each.load_state_dict(state[name])
    elif optimizer is not None:
        optimizer.load_state_dict(state)


def _check(model: Any, batch_processor: Any, optimizer: Any, logger: Any, meta: Any) -> None:
    if batch_processor is not None and not callable(batch_processor):
        raise TypeError(f"batch_processor must be callable, but got {type(batch_processor)}")
    if batch_processor is None and not hasattr(model, "train_step"):
        raise ValueError(f"{type(model).__name__} has no train_step(data, optimizer), and there is no batch_processor either")
    for each in optimizer.values() if isinstance(optimizer, dict) else [optimizer]:
        if each is not None and not isinstance(each, torch.optim.Optimizer):
            raise TypeError(f"optimizer must be a torch.optim.Optimizer object or dict or None, but got {type(each)}")
    if logger is not None and not isinstance(logger, logging.Logger):
        raise TypeError(f"logger must be a logging.Logger object, but got {type(logger)}")
    if meta is not None and not isinstance(meta, dict):
        raise TypeError(f"meta must be a dict or None, but got {type(meta)}")
