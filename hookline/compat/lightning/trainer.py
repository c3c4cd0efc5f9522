"""The stand-in for Lightning's Trainer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.batches import named_loaders
from hookline.compat.foreign import Facade, ForeignHook
from hookline.compat.foreign.steps import accumulation_steps, count_optimizer_steps, find_hook
from hookline.compat.lightning.parts import (
    AcceleratorConnector,
    EvaluationLoop,
    FitLoop,
    LoggerConnector,
    Strategy,
)
from hookline.compat.lightning.shared import SharedState
from hookline.data.position import length_of
from hookline.engine import BaseRunner, StopReason
from hookline.errors import HooklineError, Suggestion
from hookline.hooks import EvalHook, GradientCumulativeOptimizerHook, LoggerHook
from hookline.optim.schedulers import each_scheduler

if TYPE_CHECKING:
    from hookline.compat.lightning.hook import LightningHook

Batches = list[int | float]


class Trainer(Facade):
    """The attributes of `lightning.pytorch.Trainer` that a run can provide.

    Requests to stop and to save are passed on to the runner.
    """

    stands_for = "trainer"
    _hook: LightningHook

    fast_dev_run = False
    sanity_checking = False
    predicting = False
    barebones = False
    interrupted = False
    val_check_interval: float = 1.0
    overfit_batches = 0.0
    min_epochs = None
    min_steps = None
    datamodule = None
    ckpt_path = None
    profiler = None
    gradient_clip_val = None
    num_nodes = 1
    num_devices = 1
    node_rank = 0
    num_sanity_val_batches: Batches = []
    num_sanity_val_steps = 0
    enable_progress_bar = True
    precision = "32-true"
    limit_train_batches = 1.0
    limit_val_batches = 1.0
    limit_test_batches = 1.0

    def __init__(self, hook: LightningHook) -> None:
        super().__init__(hook)
        classes = hook.classes
        self.state = classes.state()
        self.steps_before_batch = 0  # optimizer steps before the current batch
        self.evaluated_batches = 0  # of all evaluations so far
        self.strategy = Strategy(self)
        self.fit_loop = FitLoop(self)
        self.precision_plugin = classes.precision()
        self._logger_connector = LoggerConnector(self)
        self._evaluation_loop = EvaluationLoop(self)
        self._accelerator_connector = AcceleratorConnector(self)
        self._schedulers: list[Any] | None = None
        self._run_schedulers: list[Any] = []  # those that callbacks did not add

    def begin(self, stage: str) -> None:
        """Begin a run in a stage of Lightning's: `fit`, `validate` or `test`."""
        self.state.fn = self._hook.classes.fn(stage)
        self.state.status = self._hook.classes.status.RUNNING
        self.shared = SharedState.for_runner(self._runner, self._hook.classes)
        self.shared.should_stop = False
        self._schedulers = None
        self.enter({"fit": "TRAINING", "validate": "VALIDATING", "test": "TESTING"}[stage])

    def enter(self, stage: str) -> None:
        """Set the running stage: `TRAINING`, `VALIDATING` or `TESTING`."""
        self.state.stage = self._hook.classes.stage[stage]

    def leave_evaluation(self) -> None:
        """Return to the training, if an evaluation interrupted it."""
        if self.state.fn == self._hook.classes.fn.FITTING:
            self.enter("TRAINING")

    @property
    def _runner(self) -> BaseRunner:
        return self._hook.runner

    # Progress. Epochs and batches count from 0; global_step counts optimizer steps.

    @property
    def current_epoch(self) -> int:
        return self._runner.epoch

    @property
    def global_step(self) -> int:
        return self._runner.optimizer_steps

    @property
    def max_epochs(self) -> int:
        return -1 if self._runner.max_epochs is None else self._runner.max_epochs

    @property
    def max_steps(self) -> int:
        limit = self._runner.loop.iter_limit
        return -1 if limit is None else count_optimizer_steps(self._runner, limit)

    @property
    def estimated_stepping_batches(self) -> int | float:
        iters = self._runner.max_iters
        return math.inf if iters is None else count_optimizer_steps(self._runner, iters)

    @property
    def is_last_batch(self) -> bool:
        done = self._runner.inner_iter
        if not self.evaluating:  # an evaluation begins after the batch is counted
            done += 1
        return self._runner.epoch_length is not None and done >= self._runner.epoch_length

    @property
    def training(self) -> bool:
        return bool(self.state.stage == self._hook.classes.stage.TRAINING)

    @property
    def validating(self) -> bool:
        return bool(self.state.stage == self._hook.classes.stage.VALIDATING)

    @property
    def testing(self) -> bool:
        return bool(self.state.stage == self._hook.classes.stage.TESTING)

    @property
    def evaluating(self) -> bool:
        return self.validating or self.testing

    # The parts of the run.

    @property
    def model(self) -> Any:
        return self._hook.module

    lightning_module = model

    @property
    def optimizers(self) -> list[Any]:
        optimizer = self._runner.optimizer
        if optimizer is None:
            return []
        if isinstance(optimizer, dict):
            return list(optimizer.values())
        return [optimizer]

    @property
    def lr_scheduler_configs(self) -> list[Any]:
        if self._schedulers is None:
            self._schedulers = []
            for scheduler in each_scheduler(self._runner.scheduler):
                interval = "epoch" if getattr(scheduler, "by_epoch", True) else "step"
                config = self._hook.classes.scheduler_config(scheduler, interval=interval)
                self._schedulers.append(config)
            self._run_schedulers = list(self._schedulers)
        return self._schedulers

    def step_added_schedulers(self) -> None:
        """Step the schedulers that the callback added; a hook of the run steps the others."""
        run_schedulers = {id(config) for config in self._run_schedulers}
        for config in self._schedulers or ():
            if id(config) not in run_schedulers:
                config.scheduler.step()

    @property
    def train_dataloader(self) -> Any:
        return self._runner.train_loader

    @property
    def val_dataloaders(self) -> Any:
        return self._runner.val_loader

    @property
    def test_dataloaders(self) -> Any:
        return self._runner.test_loader

    @property
    def num_training_batches(self) -> int | float:
        return math.inf if self._runner.epoch_length is None else self._runner.epoch_length

    @property
    def num_val_batches(self) -> Batches:
        return _lengths(self._runner.val_loader)

    @property
    def num_test_batches(self) -> Batches:
        return _lengths(self._runner.test_loader)

    @property
    def enable_validation(self) -> bool:
        return self._runner.val_loader is not None

    @property
    def check_val_every_n_epoch(self) -> int | None:
        hook = find_hook(self._runner, EvalHook)
        if hook is None:
            return 1
        return hook.interval if hook.by_epoch else None

    @property
    def accelerator(self) -> Any:
        accelerators = self._hook.classes.accelerators
        by_device = {"cuda": accelerators.CUDAAccelerator, "mps": accelerators.MPSAccelerator}
        return by_device.get(self._runner.device.type, accelerators.CPUAccelerator)()

    @property
    def callbacks(self) -> list[Any]:
        found = []
        for hook in self._runner.hooks:
            if isinstance(hook, ForeignHook) and hook.framework == self._hook.framework:
                found.append(hook.callback)
        return found

    @property
    def progress_bar_callback(self) -> Any:
        bars = self._callbacks_of(self._hook.classes.callbacks.ProgressBar)
        return bars[0] if bars else None

    @property
    def checkpoint_callbacks(self) -> list[Any]:
        return self._callbacks_of(self._hook.classes.callbacks.Checkpoint)

    @property
    def checkpoint_callback(self) -> Any:
        return next(iter(self.checkpoint_callbacks), None)

    @property
    def early_stopping_callbacks(self) -> list[Any]:
        return self._callbacks_of(self._hook.classes.callbacks.EarlyStopping)

    def _callbacks_of(self, kind: type) -> list[Any]:
        return [callback for callback in self.callbacks if isinstance(callback, kind)]

    # Processes.

    @property
    def is_global_zero(self) -> bool:
        return self._runner.is_main

    @property
    def world_size(self) -> int:
        return self._runner.world.size

    @property
    def global_rank(self) -> int:
        return self._runner.world.rank

    local_rank = global_rank

    # Metrics and loggers.

    @property
    def callback_metrics(self) -> dict[str, Any]:
        return self.shared.metrics(self._runner)

    @property
    def logged_metrics(self) -> dict[str, Any]:
        return dict(self.shared.logged)

    @property
    def progress_bar_metrics(self) -> dict[str, float]:
        return dict(self.shared.shown)

    @property
    def loggers(self) -> list[Any]:
        return self.shared.loggers

    @property
    def logger(self) -> Any:
        return self.shared.loggers[0]

    @property
    def log_every_n_steps(self) -> int:
        hook = find_hook(self._runner, LoggerHook)
        return 50 if hook is None else hook.interval

    @property
    def default_root_dir(self) -> str:
        return str(self._runner.work_dir)

    log_dir = default_root_dir

    def print(self, *args: Any, **kwargs: Any) -> None:
        if self._runner.is_main:
            print(*args, **kwargs)

    # Requests of a callback.

    @property
    def should_stop(self) -> bool:
        return self.shared.should_stop

    @should_stop.setter
    def should_stop(self, wanted: bool) -> None:
        if wanted and not self.shared.should_stop:
            self._runner.request_stop(StopReason("requested a stop", self._hook.name))
        self.shared.should_stop = bool(wanted)

    @property
    def accumulate_grad_batches(self) -> int:
        return accumulation_steps(self._runner)

    @accumulate_grad_batches.setter
    def accumulate_grad_batches(self, count: int) -> None:
        hook = find_hook(self._runner, GradientCumulativeOptimizerHook)
        if hook is not None:
            hook.cumulative_iters = count
        elif count != 1:
            raise HooklineError(
                "OptimizerHook does not accumulate gradients",
                component=self._hook.name,
                parameter="accumulate_grad_batches",
                value=count,
                suggestion=Suggestion(
                    advice="register a GradientCumulativeOptimizerHook in its place"
                ),
            )

    def save_checkpoint(
        self, filepath: Any, weights_only: bool | None = None, storage_options: Any = None
    ) -> None:
        """Write a checkpoint of Hookline's with the keys that Lightning needs to load it."""
        position = {"epoch": self.current_epoch, "global_step": self.global_step}
        version = {"pytorch-lightning_version": self._hook.version()}

        def select(checkpoint: dict[str, Any]) -> dict[str, Any]:
            selected = checkpoint
            if weights_only:
                selected = {key: checkpoint[key] for key in ("state_dict", "meta")}
            return {**selected, **position, **version}

        # The file is written at the seam, but the callback may put a link beside it at once.
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        self._hook.files.save(filepath, select)


def _lengths(loaders: Any) -> Batches:
    lengths: Batches = []
    for loader in named_loaders(loaders).values():
        length = length_of(loader)
        lengths.append(math.inf if length is None else length)
    return lengths
