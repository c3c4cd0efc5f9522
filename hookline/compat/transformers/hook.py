"""The hook around a callback of Hugging Face's Trainer: which of its events comes at which site."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from hookline.compat.foreign import ChangedAttributes, ForeignHook
from hookline.compat.foreign.losses import RunningLoss
from hookline.compat.foreign.state import decode
from hookline.compat.transformers.shared import EvalMetrics, SharedState
from hookline.engine import BaseRunner, StopReason

LOG = "on_log"
# A callback without `on_log` may read the logged values at the end, in `state.log_history`.
READ_LOG = "on_train_end"
BEST = ("best_metric", "best_global_step", "best_model_checkpoint")
TRACKERS_MODULE = "transformers.integrations.integration_utils"


class TransformersHook(ForeignHook):
    """Drives a callback with TrainingArguments, TrainerState and TrainerControl.

    All such callbacks of a run share these objects. A step is an optimizer step, as in the Trainer.
    `on_epoch_end` is called before the epoch's validation.
    """

    framework = "transformers"
    distributions = ("transformers",)
    expected = "an instance of transformers.TrainerCallback"
    base = TrainerCallback
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "before_train": ("on_train_begin", LOG),
        "before_train_epoch": ("on_epoch_begin",),
        "before_train_iter": ("on_step_begin",),
        "after_backward": ("on_pre_optimizer_step",),
        "after_optimizer_step": ("on_optimizer_step",),
        "after_train_iter": ("on_step_end", "on_substep_end", LOG, READ_LOG),
        "after_train_epoch": ("on_epoch_end",),
        "after_val_iter": ("on_prediction_step",),
        "after_val_epoch": ("on_evaluate", LOG, READ_LOG),
        "after_val": ("on_evaluate",),
        "after_test_iter": ("on_prediction_step",),
        "after_test_epoch": ("on_predict",),
        "after_save_checkpoint": ("on_save",),
        "after_train": ("on_train_end", LOG),
    }

    def __init__(self, callback: Any) -> None:
        super().__init__(callback)
        self.arguments: dict[str, Any] = {}  # TrainingArguments given by the user
        self._changed = ChangedAttributes(callback)
        self._reads_logs = self.has_any(LOG, READ_LOG)
        self._reads_steps = self.has_any("on_step_end", "on_substep_end")
        self._losses = RunningLoss(weighted=False)

    def before_run(self, runner: BaseRunner) -> None:
        self.shared = SharedState.for_runner(runner)
        self.shared.begin(runner, self.arguments)
        self._args = self.shared.args
        self._state = self.shared.state
        self._control = self.shared.control
        self._control.should_training_stop = False
        self._run_parts = {
            "model": runner.model,
            "processing_class": None,
            "optimizer": runner.optimizer,
            "lr_scheduler": runner.scheduler,
            "train_dataloader": runner.train_loader,
            "eval_dataloader": runner.val_loader,
        }
        self._call(self.callback.on_init_end)

    def before_train(self, runner: BaseRunner) -> None:
        self._args = self.shared.args
        self._run_parts["optimizer"] = runner.optimizer
        self._state.global_step = runner.optimizer_steps
        self._state.epoch = runner.epoch
        self._losses.reset()
        self._call(self.callback.on_train_begin)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._state.epoch = runner.epoch
        self._call(self.callback.on_epoch_begin)

    def before_train_iter(self, runner: BaseRunner) -> None:
        if not runner.loop.accumulating:
            self._state.global_step = runner.optimizer_steps
            self._call(self.callback.on_step_begin)

    def after_backward(self, runner: BaseRunner) -> None:
        self._call(self.callback.on_pre_optimizer_step)

    def after_optimizer_step(self, runner: BaseRunner) -> None:
        self._call(self.callback.on_optimizer_step)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self._reads_logs:
            self._losses.add(runner.outputs)
        state = self._state
        state.global_step = runner.optimizer_steps
        length = runner.epoch_length
        if length is not None:
            state.epoch = runner.epoch + (runner.inner_iter + 1) / length
        if self._reads_steps and runner.loop.accumulating:
            self._call(self.callback.on_substep_end)
        elif self._reads_steps:
            self._call(self.callback.on_step_end)
        is_step = not runner.loop.accumulating
        if self._reads_logs and is_step and state.global_step % state.logging_steps == 0:
            self._log(runner)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._update_progress(runner)
        self._state.epoch = runner.epoch + 1
        self._call(self.callback.on_epoch_end)

    def after_val_iter(self, runner: BaseRunner) -> None:
        self._call(self.callback.on_prediction_step)

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self._update_progress(runner)
        metrics = EvalMetrics()
        for name, value in runner.metrics.items():
            metrics[f"eval_{name.removeprefix('val_')}"] = value
        metrics["epoch"] = self._state.epoch
        self.shared.add_to_history(metrics)
        self._call(self.callback.on_log, logs=dict(metrics))
        self._call(self.callback.on_evaluate, metrics=metrics)

    def after_val(self, runner: BaseRunner) -> None:
        self.shared.update_best(runner)

    after_test_iter = after_val_iter

    def after_test_epoch(self, runner: BaseRunner) -> None:
        metrics = {}
        for name, value in runner.metrics.items():
            metrics[f"test_{name.removeprefix('test_')}"] = value
        self._call(self.callback.on_predict, metrics=metrics)

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._update_progress(runner)
        with self.shared.checkpoint_folder(runner):
            self._call(self.callback.on_save)

    def after_train(self, runner: BaseRunner) -> None:
        self._update_progress(runner)
        if self._reads_logs and self._losses.has_losses:
            self._log(runner)
        self._call(self.callback.on_train_end)

    def state_dict(self) -> dict[str, Any]:
        if isinstance(self.callback, ExportableState):
            attributes = self.plain_state(self.callback.state()["attributes"])
        else:
            attributes = self._changed_attributes()
        best = {}
        if self.runner is not None:
            state = SharedState.for_runner(self.runner).state
            best = {name: getattr(state, name) for name in BEST}
        return {"attributes": attributes, "best": best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, value in decode(dict(state["attributes"])).items():
            setattr(self.callback, name, value)
        for name, value in state["best"].items():
            setattr(SharedState.for_runner(self.runner).state, name, value)

    def _changed_attributes(self) -> dict[str, Any]:
        """Return the changed attributes, without those that describe the process.

        They mark a tracker as initialized; a resumed run must initialize it again.
        """
        is_tracker = _is_tracker(self.callback)
        changed = {}
        for name, value in self._changed.collect().items():
            if name != "_initialized" and not (is_tracker and name.startswith("_")):
                changed[name] = value
        return changed

    def _call(self, method: Callable[..., Any], **more: Any) -> None:
        """Call a method of the callback and pass its requests on to the runner."""
        state = self._state
        state._hook = self
        returned = method(self._args, state, self._control, **self._run_parts, **more)
        control = returned or self._control
        if (
            control.should_training_stop
            or control.should_evaluate
            or control.should_save
            or control.should_log
            or control.should_epoch_stop
        ):
            self._pass_requests_on(control)

    def _pass_requests_on(self, control: Any) -> None:
        runner = self.runner
        if control.should_training_stop:
            runner.request_stop(StopReason("requested a stop", self.name))
        if control.should_evaluate:
            runner.request_validate()
        if control.should_save and runner.checkpointer.is_open:
            runner.request_save()
        if control.should_save and not runner.checkpointer.is_open:
            self.warn("cannot save: the run has no CheckpointHook")
        if control.should_epoch_stop:
            self.warn("cannot end the epoch early: not supported here")
        if control.should_log:
            for hook in runner.hooks:
                if isinstance(hook, TransformersHook) and hook._reads_logs:
                    hook._log(runner)
        control.should_training_stop = False
        control.should_evaluate = False
        control.should_save = False
        control.should_log = False
        control.should_epoch_stop = False

    def _log(self, runner: BaseRunner) -> None:
        """Call `on_log` with the mean loss since the last call."""
        if not self._losses.has_losses:
            return
        logs: dict[str, Any] = {"loss": self._losses.compute()}
        if isinstance(runner.optimizer, torch.optim.Optimizer):
            logs["learning_rate"] = runner.optimizer.param_groups[0]["lr"]
        logs["epoch"] = self._state.epoch
        self._losses.reset()
        self.shared.add_to_history(logs)
        self._call(self.callback.on_log, logs=logs)

    def _update_progress(self, runner: BaseRunner) -> None:
        """Update the counters, at sites before which the callback may not have been called."""
        self._state.global_step = runner.optimizer_steps
        if runner.epoch_length:
            self._state.epoch = runner.iter / runner.epoch_length


def _is_tracker(callback: Any) -> bool:
    """Return whether a callback is one of transformers' integrations of experiment trackers."""
    # Do not import the module: it imports the installed trackers, some of which patch torch. An
    # instance of one of its classes can only exist if it is imported.
    module = sys.modules.get(TRACKERS_MODULE)
    if module is None:
        return False
    return isinstance(callback, tuple(module.INTEGRATION_TO_CALLBACK.values()))
