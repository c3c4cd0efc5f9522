"""Hookline's engine in MMEngine's runner: its attributes, counters, signals and sites."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.device import get_device
from hookline.compat.mmengine.hooks import Hook
from hookline.compat.mmengine.optim import OptimWrapper
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.exact_resume import ExactResume
from hookline.compat.mmengine.runner.hook_methods import (
    HookMethods,
    MMEngineCheckpointer,
    MMEngineLoop,
    ValLoopEvaluation,
)
from hookline.compat.openmmlab import alias, format_stages
from hookline.dist import World, current_world
from hookline.dist.wrapping import Parallel
from hookline.engine.manager import HookManager
from hookline.engine.session import RunSession
from hookline.events.storage import EventStorage
from hookline.metrics.best import BestTracker
from hookline.metrics.results import Metrics
from hookline.optim.step_hooks import follow_steps
from hookline.profiling.cost_report import DEFAULT_BUDGET, check_budget, parse_percentage
from hookline.progress import current_position
from hookline.secrets import mask_secrets
from hookline.version import __version__


def _counter(name: str) -> Any:
    """Return a property for a number that the training loop keeps; 0 before the loop is built."""

    def get(self: Any) -> Any:
        return getattr(self._train_loop, name) if self.has_train_loop else 0

    return property(get, _set_in_loop(name))


def _length(name: str) -> Any:
    """Return a property for the length of training, for which the loop is built."""

    def get(self: Any) -> Any:
        return getattr(self.train_loop, name) if self._train_loop else 0

    return property(get, _set_in_loop(name))


def _set_in_loop(name: str) -> Callable[[Any, Any], None]:
    def put(self: Any, value: Any) -> None:
        setattr(self.train_loop, f"_{name}", value)

    return put


class EngineMethods(ExactResume, HookMethods):
    """The parts of Hookline's engine in a runner with MMEngine's interface."""

    has_seams = True  # CheckpointHook may request a file instead of writing it
    mmengine_version = f"hookline {__version__}"
    message_hub: Any
    rank: Any
    train_loop: Any

    has_seed_per_rank: Any = property(
        lambda self: self._randomness_cfg.get("diff_rank_seed", False)
    )
    epoch = _counter("epoch")
    iter = _counter("iter")
    max_epochs = _length("max_epochs")
    max_iters = _length("max_iters")

    @property
    def has_train_loop(self: Any) -> bool:
        """Whether the training loop was built, so that there are an epoch and an iteration."""
        return isinstance(self._train_loop, BaseLoop)

    @property
    def masked_config_text(self: Any) -> str:
        """The config as text for files, without passwords and tokens."""
        return Config(mask_secrets(self.cfg.to_dict())).pretty_text

    def get_hooks_info(self: Any) -> str:
        """Return, as text, the hooks of each stage in their order, as MMEngine prints it."""
        return format_stages({stage: self.sites.hooks[stage] for stage in Hook.stages})

    # The names that Hookline's hooks use.

    train_loader = property(lambda self: self._train_loop and self.train_loop.dataloader)
    test_loader = property(lambda self: self._test_loop and self.test_loop.dataloader)
    optimizer = property(lambda self: getattr(self.optim_wrapper, "optimizer", None))
    config = property(lambda self: self.cfg.to_dict())
    scheduler = alias("param_schedulers")

    @property
    def val_loader(self: Any) -> Any:
        return self._val_loop and self.val_loop.dataloader

    @val_loader.setter
    def val_loader(self: Any, loader: Any) -> None:
        if self._val_loop is None:
            raise RuntimeError("to validate, pass val_dataloader, val_cfg and val_evaluator")
        self.val_loop.dataloader = loader

    @property
    def inner_iter(self: Any) -> int:
        """The number of finished batches in the epoch, or in the run of a loop of iterations."""
        return int(getattr(self._train_loop, "inner_iter", self.iter))

    @inner_iter.setter
    def inner_iter(self: Any, value: int) -> None:
        if hasattr(self._train_loop, "inner_iter"):
            self._train_loop.inner_iter = value

    @property
    def epoch_length(self: Any) -> int | None:  # type: ignore[override]
        if self._train_loop is None:
            return None
        return getattr(self.train_loop, "epoch_length", None) or len(self.train_dataloader)

    @contextmanager
    def _following_optimizer(self) -> Iterator[None]:
        """Call Hookline's sites around backward and step, which the model's train_step runs.

        A model with several optimizers has several losses, so these sites are not called for it.
        """
        wrapper = self.optim_wrapper
        if self.optimizer is None or not isinstance(wrapper, OptimWrapper):
            yield
            return
        wrapper.on_loss = self._after_forward
        try:
            with follow_steps(self.optimizer, self._after_step, self._after_backward):
                yield
        finally:
            wrapper.on_loss = None

    def _after_forward(self, loss: torch.Tensor) -> torch.Tensor:
        self.outputs = {"loss": loss}
        for call in self.sites.after_forward:
            call(self)
        self.loop.phase = "optimize"
        changed: torch.Tensor = self.outputs["loss"]
        return changed

    def _after_backward(self) -> None:
        for call in self.sites.after_backward:
            call(self)

    def _after_step(self) -> None:
        self.optimizer_steps += 1
        for call in self.sites.after_optimizer_step:
            call(self)

    def _run(self, function: Callable[[], Any], graceful: bool) -> Any:
        """Call a function, with signals, failures and cleanup handled."""
        try:
            with RunSession(self, is_training=graceful):
                return function()
        finally:
            self._training_scope.close()
            self._evaluation_scope.close()
            self.checkpointer.close(wait=False)
            self.release_stores()

    def _begin_training(self) -> None:
        """Prepare the engine for a run of training."""
        self.stop_reason = None
        self.sites.costs.start(self)
        self.best.reset()

    def _take_optimizer(self) -> None:
        """Let hooks of Hookline find the optimizer, and note its options before they change."""
        is_by_epoch = hasattr(self.train_loop, "inner_iter")
        self.loop.iter_limit = None if is_by_epoch else self.max_iters
        self.checkpointer.remember_hyperparameters()
        if isinstance(self.optim_wrapper, OptimWrapper):
            wrapper: Any = self.optim_wrapper
            singles = wrapper.values() if self.optimizer is None else [wrapper]
            for single in singles:
                # The current message hub may belong to a runner that was made later.
                single.message_hub = self.message_hub

    def _take_model(self) -> None:
        """Let hooks of Hookline find the model."""
        self.parallel = Parallel(self.model, None, World(), "auto", sync_bn=False, compile=False)

    def _begin_engine(self) -> None:
        """Set the attributes that Hookline's engine and its hooks use."""
        self.call_arguments = None
        self._stage = ""
        self._in_epoch = False
        self._requested_at = None
        self._evaluation_scope = ExitStack()
        self._training_scope = ExitStack()
        self._stores: dict[Any, Any] = {}
        self._missed_validation = False
        self._val_workers = None
        self._locate_error = None
        self.mode = "train"
        self.stop_reason = None
        self.exception = None
        self.batch: Any = None
        self.batch_idx = 0
        self.outputs = {}
        self.checkpoint = None
        self.metrics = Metrics()
        self.loss_fn = None
        self.optimizer_steps = 0
        self.device = torch.device(get_device())
        self.is_main = self.rank == 0
        self.world = current_world()
        self.events = EventStorage(self, current_position)
        self.evaluation = ValLoopEvaluation()
        self.best = BestTracker({}, logging.getLogger("hookline"))
        self.checkpointer = MMEngineCheckpointer(self)
        self.loop = MMEngineLoop(self)
        self.loop.owns_data = False
        HookManager.__init__(self, "flat")
        self.sites.costs.budget = parse_percentage(DEFAULT_BUDGET)
        self.sites.costs.after_sample = check_budget
