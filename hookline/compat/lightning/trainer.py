"""The stand-in for Lightning's Trainer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.compat.foreign import Facade, ForeignHook
from hookline.compat.lightning.parts import AcceleratorConnector, EvaluationLoop, FitLoop, LoggerConnector, Strategy
from hookline.compat.lightning.shared import Shared
from hookline.engine import BaseRunner
from hookline.engine.evaluation import named_loaders
from hookline.engine.length import length_of
from hookline.errors import HooklineError
from hookline.hooks import EvalHook, GradientCumulativeOptimizerHook, LoggerHook
from hookline.optim.schedulers import each_scheduler

if TYPE_CHECKING:
    from hookline.compat.lightning.hook import LightningHook

Batches = list[int | float]


class Trainer(Facade):
    """What of `lightning.pytorch.Trainer` a run can answer. Requests become requests of ours: stop, save, accumulate."""

    stands_for = "trainer"
    _hook: LightningHook

    fast_dev_run = False
    sanity_checking = False
    predicting = False
    barebones = False
    interrupted = False
    val_check_interval: float = 1.0
    overfit_batches = 0.0
    min_epochs = min_steps = datamodule = ckpt_path = profiler = gradient_clip_val = None
    num_nodes = num_devices = 1
    node_rank = 0
    num_sanity_val_batches: Batches = []
    num_sanity_val_steps = 0
    enable_progress_bar = True
    precision = "32-true"
    limit_train_batches = limit_val_batches = limit_test_batches = 1.0

    def __init__(self, hook: LightningHook) -> None:
        super().__init__(hook)
        names = hook.names
        self.state = names.state()
        self.stepped = 0  # optimizer steps before the current batch
        self.evaluated = 0  # batches of all evaluations so far
        self.strategy = Strategy(self)
        self.fit_loop = FitLoop(self)
        self.precision_plugin = names.precision()
        self._logger_connector = LoggerConnector(self)
        self._evaluation_loop = EvaluationLoop(self)
        self._accelerator_connector = AcceleratorConnector(self)
        self._schedulers: list[Any] | None = None
        self._own_schedulers: list[Any] = []

    def begin(self, stage: str) -> None:
        self.state.fn = self._hook.names.fn(stage)
        self.state.status = self._hook.names.status.RUNNING
        self.shared = Shared.of(self._runner, self._hook.names)
        self.shared.should_stop = False
        self._schedulers = None
        self.enter({"fit": "TRAINING", "validate": "VALIDATING", "test": "TESTING"}[stage])

    def enter(self, stage: str) -> None:
        self.state.stage = self._hook.names.stage[stage]

    def leave(self) -> None:
        """Back from a validation to what it interrupted."""
        if self.state.fn == self._hook.names.fn.FITTING:
            self.enter("TRAINING")

    @property
    def _runner(self) -> BaseRunner:
        return self._hook.runner

    # Where the run is. Lightning's epochs and batches count from 0 as ours do; its global_step counts optimizer steps.

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
        return -1 if self._runner.iter_limit is None else self._steps(self._runner.iter_limit)

    @property
    def estimated_stepping_batches(self) -> int | float:
        return math.inf if self._runner.max_iters is None else self._steps(self._runner.max_iters)

    def _steps(self, iters: int) -> int:
        """How many optimizer steps so many iterations make; an epoch, and the run, ends with a step."""
        together, length = self.accumulate_grad_batches, self._runner.epoch_length or iters
        return iters // length * -(-length // together) + -(-(iters % length) // together)

    @property
    def is_last_batch(self) -> bool:
        done = self._runner.inner_iter + (not self.evaluating)  # an evaluation comes when the batch is counted already
        return self._runner.epoch_length is not None and done >= self._runner.epoch_length

    @property
    def training(self) -> bool:
        return bool(self.state.stage == self._hook.names.stage.TRAINING)

    @property
    def validating(self) -> bool:
        return bool(self.state.stage == self._hook.names.stage.VALIDATING)

    @property
    def testing(self) -> bool:
        return bool(self.state.stage == self._hook.names.stage.TESTING)

    @property
    def evaluating(self) -> bool:
        return self.validating or self.testing

    # What it runs on.

    @property
    def model(self) -> Any:
        return self._hook.module

    lightning_module = model

    @property
    def optimizers(self) -> list[Any]:
        optimizer = self._runner.optimizer
        return [] if optimizer is None else list(optimizer.values()) if isinstance(optimizer, dict) else [optimizer]

    @property
    def lr_scheduler_configs(self) -> list[Any]:
        if self._schedulers is None:
            config = self._hook.names.scheduler_config
            own = each_scheduler(self._runner.scheduler)
            self._schedulers = [config(each, interval="epoch" if getattr(each, "by_epoch", True) else "step") for each in own]
            self._own_schedulers = list(self._schedulers)
        return self._schedulers

    def step_added_schedulers(self) -> None:
        """Step the schedulers that the callback added; those of the run are stepped by their own hook."""
        added = [config for config in self._schedulers or () if not any(config is own for own in self._own_schedulers)]
        for config in added:
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
        hook = self._find(EvalHook)
        return 1 if hook is None else hook.interval if hook.by_epoch else None

    @property
    def accelerator(self) -> Any:
        kinds = self._hook.names.accelerators
        return {"cuda": kinds.CUDAAccelerator, "mps": kinds.MPSAccelerator}.get(self._runner.device.type, kinds.CPUAccelerator)()

    @property
    def callbacks(self) -> list[Any]:
        return [hook.callback for hook in self._runner.hooks if isinstance(hook, ForeignHook) and hook.framework == self._hook.framework]

    @property
    def progress_bar_callback(self) -> Any:
        return next((each for each in self.callbacks if any(base.__name__ == "ProgressBar" for base in type(each).__mro__)), None)

    @property
    def checkpoint_callbacks(self) -> list[Any]:
        return [each for each in self.callbacks if any(base.__name__ == "Checkpoint" for base in type(each).__mro__)]

    @property
    def checkpoint_callback(self) -> Any:
        return next(iter(self.checkpoint_callbacks), None)

    @property
    def early_stopping_callbacks(self) -> list[Any]:
        return [each for each in self.callbacks if any(base.__name__ == "EarlyStopping" for base in type(each).__mro__)]

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

    # What is measured and recorded.

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
        hook = self._find(LoggerHook)
        return 50 if hook is None else hook.interval

    @property
    def default_root_dir(self) -> str:
        return str(self._runner.work_dir)

    log_dir = default_root_dir

    def print(self, *args: Any, **kwargs: Any) -> None:
        if self._runner.is_main:
            print(*args, **kwargs)

    # What a callback may ask for.

    @property
    def should_stop(self) -> bool:
        return self.shared.should_stop

    @should_stop.setter
    def should_stop(self, wanted: bool) -> None:
        if wanted and not self.shared.should_stop:
            self._runner.request_stop(f"{self._hook.name} asked to stop")
        self.shared.should_stop = bool(wanted)

    @property
    def accumulate_grad_batches(self) -> int:
        hook = self._find(GradientCumulativeOptimizerHook)
        return 1 if hook is None else hook.cumulative_iters

    @accumulate_grad_batches.setter
    def accumulate_grad_batches(self, count: int) -> None:
        hook = self._find(GradientCumulativeOptimizerHook)
        if hook is not None:
            hook.cumulative_iters = count
        elif count != 1:
            raise HooklineError(
                f"{self._hook.name} wants gradients of {count} batches added up, which OptimizerHook does not do: "
                f"register a GradientCumulativeOptimizerHook in its place"
            )

    def save_checkpoint(self, filepath: Any, weights_only: bool | None = None, storage_options: Any = None) -> None:
        """Write a checkpoint that is one of ours and has what Lightning looks for when it loads one."""
        position = {"epoch": self.current_epoch, "global_step": self.global_step}

        def content(checkpoint: dict[str, Any]) -> dict[str, Any]:
            kept = {"state_dict": checkpoint["state_dict"], "meta": checkpoint["meta"]} if weights_only else checkpoint
            return {**kept, **position, "pytorch-lightning_version": self._hook.version()}

        Path(filepath).parent.mkdir(parents=True, exist_ok=True)  # for a callback that goes on to put a link beside it
        self._hook.files.save(filepath, content)

    def _find(self, kind: type[Any]) -> Any:
        return next((hook for hook in self._runner.hooks if isinstance(hook, kind)), None)


def _lengths(loaders: Any) -> Batches:
    return [math.inf if (length := length_of(loader)) is None else length for loader in named_loaders(loaders).values()]
