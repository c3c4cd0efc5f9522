"""The hook around a callback of Hugging Face's Trainer: which of its events comes at which site."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import attrgetter
from typing import Any, ClassVar

import torch
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hookline.compat.foreign import ChangedAttributes, ForeignHook, plain_part
from hookline.compat.foreign.losses import MeanLoss
from hookline.compat.foreign.state import decode
from hookline.compat.transformers.shared import EvalMetrics, Shared
from hookline.engine import BaseRunner

LOGGING = ("on_log",)
READING = ("on_train_end",)  # where a callback that has no `on_log` reads what was logged, in `state.log_history`
NOTHING: AbstractContextManager[None] = nullcontext()
asked_for = attrgetter("should_training_stop", "should_epoch_stop", "should_save", "should_evaluate", "should_log")


class TransformersHook(ForeignHook):
    """Drives a callback with TrainingArguments, TrainerState and TrainerControl that all such callbacks of a run share.

    A step is an optimizer step, as it is there; `on_epoch_end` comes before the epoch's validation.
    """

    framework = "transformers"
    distributions = ("transformers",)
    base = TrainerCallback
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "before_train": ("on_train_begin", *LOGGING),
        "before_train_epoch": ("on_epoch_begin",),
        "before_train_iter": ("on_step_begin",),
        "after_backward": ("on_pre_optimizer_step",),
        "after_optimizer_step": ("on_optimizer_step",),
        "after_train_iter": ("on_step_end", "on_substep_end", *LOGGING, *READING),
        "after_train_epoch": ("on_epoch_end",),
        "after_val_iter": ("on_prediction_step",),
        "after_val_epoch": ("on_evaluate", *LOGGING, *READING),
        "after_val": ("on_evaluate",),
        "after_test_iter": ("on_prediction_step",),
        "after_test_epoch": ("on_predict",),
        "after_save_checkpoint": ("on_save",),
        "after_train": ("on_train_end", *LOGGING),
    }

    def __init__(self, callback: Any) -> None:
        super().__init__(callback)
        self.given: dict[str, Any] = {}
        self._changed = ChangedAttributes(callback)
        self._refused: set[str] = set()
        self._logs = self.has("on_log") or self.has("on_train_end")
        self._tracks = any(cls.__module__.startswith("transformers.") for cls in type(callback).__mro__ if cls is not TrainerCallback)
        self._steps = self.has("on_step_end") or self.has("on_substep_end")
        self._wants_folder = _names_the_folder(callback.on_save)
        self._losses = MeanLoss(weighted=False)

    def before_run(self, runner: BaseRunner) -> None:
        self.shared = Shared.of(runner)
        self.shared.begin(runner, self.given)
        self._args, self._state, self._control = self.shared.args, self.shared.state, self.shared.control
        self._control.should_training_stop = False
        self._others = {
            "model": runner.model,
            "processing_class": None,
            "optimizer": runner.optimizer,
            "lr_scheduler": runner.scheduler,
            "train_dataloader": runner.train_loader,
            "eval_dataloader": runner.val_loader,
        }
        self._call(self.callback.on_init_end)

    def before_train(self, runner: BaseRunner) -> None:
        self._args, self._others["optimizer"] = self.shared.args, runner.optimizer
        self._state.global_step, self._state.epoch = runner.optimizer_steps, runner.epoch
        self._losses.reset()
        self._call(self.callback.on_train_begin)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._state.epoch = runner.epoch
        self._call(self.callback.on_epoch_begin)

    def before_train_iter(self, runner: BaseRunner) -> None:
        if not runner.accumulating:
            self._state.global_step = runner.optimizer_steps
            self._call(self.callback.on_step_begin)

    def after_backward(self, runner: BaseRunner) -> None:
        self._call(self.callback.on_pre_optimizer_step)

    def after_optimizer_step(self, runner: BaseRunner) -> None:
        self._call(self.callback.on_optimizer_step)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self._logs:
            self._losses.add(runner.outputs)
        state = self._state
        state.global_step = runner.optimizer_steps
        length = runner.epoch_length
        if length is not None:
            state.epoch = runner.epoch + (runner.inner_iter + 1) / length
        if self._steps:
            self._call(self.callback.on_substep_end if runner.accumulating else self.callback.on_step_end)
        if self._logs and not runner.accumulating and state.global_step % state.logging_steps == 0:
            self._log(runner)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._catch_up(runner)
        self._state.epoch = runner.epoch + 1
        self._call(self.callback.on_epoch_end)

    def after_val_iter(self, runner: BaseRunner) -> None:
        self._call(self.callback.on_prediction_step)

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self._catch_up(runner)
        metrics = EvalMetrics({f"eval_{name.removeprefix('val_')}": value for name, value in runner.metrics.items()})
        metrics["epoch"] = self._state.epoch
        self.shared.note(metrics)
        self._call(self.callback.on_log, logs=dict(metrics))
        self._call(self.callback.on_evaluate, metrics=metrics)

    def after_val(self, runner: BaseRunner) -> None:
        self.shared.judge(runner)

    after_test_iter = after_val_iter

    def after_test_epoch(self, runner: BaseRunner) -> None:
        metrics = {f"test_{name.removeprefix('test_')}": value for name, value in runner.metrics.items()}
        self._call(self.callback.on_predict, metrics=metrics)

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._catch_up(runner)
        with self.shared.saved(runner) if self._wants_folder else NOTHING:
            self._call(self.callback.on_save)

    def after_train(self, runner: BaseRunner) -> None:
        self._catch_up(runner)
        if self._logs and self._losses.started:
            self._log(runner)
        self._call(self.callback.on_train_end)

    def state_dict(self) -> dict[str, Any]:
        if isinstance(self.callback, ExportableState):
            kept = plain_part(self.callback.state()["attributes"], self._refuse)
        else:
            changed = self._changed.collect(lambda name: None)  # bars, writers and the like are made anew
            kept = {name: value for name, value in changed.items() if not self._is_of_this_process(name)}
        best = {} if self.runner is None else Shared.of(self.runner).state
        position = {name: getattr(best, name) for name in ("best_metric", "best_global_step", "best_model_checkpoint")} if best else {}
        return {"attributes": kept, "best": position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, value in decode(dict(state["attributes"])).items():
            setattr(self.callback, name, value)
        for name, value in state["best"].items():
            setattr(Shared.of(self.runner).state, name, value)

    def _call(self, method: Callable[..., Any], **more: Any) -> None:
        """Call the callback, and pass on what it asks for."""
        state = self._state
        state._hook = self
        control = method(self._args, state, self._control, **self._others, **more) or self._control
        if (
            control.should_training_stop
            or control.should_evaluate
            or control.should_save
            or control.should_log
            or control.should_epoch_stop
        ):
            self._request(control)

    def _request(self, control: Any) -> None:
        runner = self.runner
        if control.should_training_stop:
            runner.request_stop(f"{self.name} asked to stop")
        if control.should_evaluate:
            runner.request_validate()
        if control.should_save and runner.saver is not None:
            runner.request_save()
        if control.should_save and runner.saver is None:
            self.warn("asks for a checkpoint, and there is no CheckpointHook to write one")
        if control.should_epoch_stop:
            self.warn("asks to end the epoch early, which a run here does not do")
        if control.should_log:
            for hook in runner.hooks:
                if isinstance(hook, TransformersHook) and hook._logs:
                    hook._log(runner)
        control.should_evaluate = control.should_save = control.should_log = control.should_epoch_stop = False
        control.should_training_stop = False

    def _log(self, runner: BaseRunner) -> None:
        """`on_log` with the mean loss since the last time."""
        if not self._losses.started:
            return
        logs: dict[str, Any] = {"loss": self._losses.value()}
        if isinstance(runner.optimizer, torch.optim.Optimizer):
            logs["learning_rate"] = runner.optimizer.param_groups[0]["lr"]
        logs["epoch"] = self._state.epoch
        self._losses.reset()
        self.shared.note(logs)
        self._call(self.callback.on_log, logs=logs)

    def _catch_up(self, runner: BaseRunner) -> None:
        """Tell the state where the run is, at sites before which this callback may not have been called for long."""
        self._state.global_step = runner.optimizer_steps
        if runner.epoch_length:
            self._state.epoch = runner.iter / runner.epoch_length

    def _is_of_this_process(self, name: str) -> bool:
        """Whether an attribute only says that a tracker was set up; with it, a resumed run would not set it up again."""
        return name == "_initialized" or (self._tracks and name.startswith("_"))

    def _refuse(self, key: str) -> None:
        if key not in self._refused:
            self._refused.add(key)
            self.warn("%r of its state is neither a tensor nor plain data and is not in the checkpoint", key)


def _names_the_folder(method: Callable[..., Any]) -> bool:
    """Whether a method speaks of `checkpoint-<step>`: for all others, writing that folder would be for nothing."""
    code = getattr(method, "__code__", None)
    if code is None:
        return False
    texts = [constant for constant in code.co_consts if isinstance(constant, str)]
    return "PREFIX_CHECKPOINT_DIR" in code.co_names or any(f"{PREFIX_CHECKPOINT_DIR}-" in text for text in texts)
