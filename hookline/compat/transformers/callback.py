"""Hooks of Hookline in Hugging Face's Trainer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hookline.checkpoint import write_checkpoint
from hookline.checkpoint.formats import deserialize
from hookline.counters import COUNTERS
from hookline.data.position import length_of
from hookline.driver import Drive
from hookline.engine import BaseRunner
from hookline.engine.manager import HookOrConfig

FILE = "hookline.pth"  # in the Trainer's checkpoint folder, beside its own files


class HooklineCallback(TrainerCallback):  # type: ignore[misc]
    """A callback that runs hooks in the Trainer's loop, as a Runner does.

    Hooks see `runner`. Its iterations are the Trainer's optimizer steps, and its metrics those of
    the Trainer's evaluation (`eval_loss` is `val_loss`). A request to stop becomes the Trainer's.
    The state of hooks goes into the Trainer's checkpoint folders, as `hookline.pth`.

    The Trainer steps the optimizer and decides when to evaluate, so hooks that do this
    (OptimizerHook, EvalHook) are refused. The Trainer does not report failures to callbacks: run it
    as `with callback: trainer.train()`, so that hooks see them.

    Args:
        hooks: Hooks or their configs.
        work_dir: The directory for files of hooks; `hookline` in the output folder by default.

    Example:
        trainer = Trainer(…, callbacks=[HooklineCallback([EMAHook(), CheckpointHook()])])
    """

    def __init__(self, hooks: Iterable[HookOrConfig], work_dir: Any = None) -> None:
        self.hooks = list(hooks)
        self.work_dir = work_dir
        self.runner: BaseRunner = None  # type: ignore[assignment]  # made when the training begins
        self._is_validating = False
        self._is_epoch_ending = False  # its training part is over, an evaluation may follow

    def __enter__(self) -> HooklineCallback:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._is_running:
            self._forward_hook.remove()
            self._drive.__exit__(kind, error, trace)

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **others: Any,
    ) -> None:
        if self._is_running:
            self._clean_up_failed_training(model if state.global_step else None)
        self._is_validating = False
        self._is_epoch_ending = False
        self.runner = self._make_runner(args, state, model, optimizer)
        self._set_position(args, state, length_of(others.get("train_dataloader")))
        resume_state = self._load_state(args, state) if state.global_step else None
        self._drive = Drive(
            self.runner,
            handle_signals=False,
            owner_validates=args.eval_strategy != "no",
            resume_state=resume_state,
        )
        self._drive.__enter__()
        # The Trainer reports when gradients are complete and clipped: on_pre_optimizer_step.
        self._drive.follow_optimizer(before=False)
        self._forward_hook = model.register_forward_hook(self._after_forward, with_kwargs=True)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self._is_running:
            hooks_state = self._drive.state_dict()
            folder = _checkpoint_folder(args, state)
            if args.should_save and folder.is_dir():
                write_checkpoint(hooks_state, folder / FILE)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.runner.epoch = math.floor(state.epoch or 0)
        self._drive.begin_epoch()

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._drive.begin_batch()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._drive.after_backward()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._stop_unless(self._drive.end_batch(), control)
        self._begin_validation_if_due(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._drive.end_train_epoch()
        self._is_epoch_ending = True
        self._begin_validation_if_due(control)
        if not control.should_evaluate:
            self._end_epoch(control)

    def on_evaluate(
        self,
        args: Any,
        state: Any,
        control: Any,
        metrics: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        if not self._is_running:
            return
        if not self._is_validating:
            # Another callback requested it after this one: the model had its own weights.
            self._drive.begin_validation()
        self._is_validating = False
        self._drive.end_validation(_rename_metrics(metrics or {}))
        if self._is_epoch_ending:
            self._end_epoch(control)
        else:
            self._stop_unless(self._drive.settle(), control)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self._is_epoch_ending:
            self._end_epoch(control)
        self._forward_hook.remove()
        self._drive.__exit__(None, None, None)

    @property
    def _is_running(self) -> bool:
        return self.runner is not None and self.runner.loop.is_running

    def _make_runner(self, args: Any, state: Any, model: Any, optimizer: Any) -> BaseRunner:
        return BaseRunner(
            model,
            optimizer=getattr(optimizer, "optimizer", optimizer),
            hooks=self.hooks,
            max_epochs=max(1, math.ceil(state.num_train_epochs)),
            work_dir=self.work_dir or f"{args.output_dir}/hookline",
            device=next(model.parameters()).device,
        )

    def _set_position(self, args: Any, state: Any, batches: int | None) -> None:
        """Set the runner's counters to those of the Trainer, which counts optimizer steps."""
        runner = self.runner
        length = None
        if batches is not None:
            length = -(-batches // args.gradient_accumulation_steps)
        runner.epoch_length = length
        runner.max_iters = state.max_steps
        runner.iter = state.global_step
        runner.optimizer_steps = state.global_step
        runner.epoch = math.floor(state.epoch or 0)
        runner.inner_iter = 0
        if length:
            runner.epoch, runner.inner_iter = divmod(state.global_step, length)
        if args.ignore_data_skip:
            runner.inner_iter = 0

    def _clean_up_failed_training(self, resumed_model: Any) -> None:
        """Clean up after a training that failed, and keep weights that were loaded since."""
        weights = None
        if resumed_model is not None:
            state = resumed_model.state_dict()
            weights = {name: value.clone() for name, value in state.items()}
        self._forward_hook.remove()
        self._drive.close()
        if weights is not None:
            resumed_model.load_state_dict(weights)

    def _load_state(self, args: Any, state: Any) -> dict[str, Any] | None:
        """Load the state of hooks from the checkpoint that the Trainer resumes from."""
        folders = [_checkpoint_folder(args, state)]
        if isinstance(args.resume_from_checkpoint, str):
            folders.insert(0, Path(args.resume_from_checkpoint))
        for folder in folders:
            if (folder / FILE).is_file():
                with open(folder / FILE, "rb") as file:
                    loaded = deserialize(file, str(folder / FILE))
                # The position is the Trainer's.
                position = {name: getattr(self.runner, name) for name in COUNTERS}
                return {**loaded, "meta": {**loaded["meta"], **position}}
        self.runner.logger.warning(
            "HooklineCallback: resumed at step %d without %s: hooks start without their state",
            state.global_step,
            folders[-1] / FILE,
        )
        return None

    def _end_epoch(self, control: Any) -> None:
        self._is_epoch_ending = False
        self._stop_unless(self._drive.end_epoch(train_epoch_ended=True), control)

    def _begin_validation_if_due(self, control: Any) -> None:
        """Begin a validation: the Trainer has decided on it, and reports only its end."""
        if control.should_evaluate and not self._is_validating:
            self._is_validating = True
            self._drive.begin_validation()

    def _stop_unless(self, should_continue: bool, control: Any) -> None:
        if not should_continue:
            control.should_training_stop = True

    def _after_forward(self, model: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        """Take batch and loss from the model's call: the Trainer passes neither to callbacks."""
        if not model.training:
            return
        self.runner.batch = kwargs or args
        if isinstance(output, Mapping):
            loss = output.get("loss")
        else:
            loss = getattr(output, "loss", None)
        if loss is None:
            # The Trainer computes the loss itself: keep no loss of an earlier batch.
            self.runner.outputs = {}
        else:
            self._drive.loss(loss)


def _checkpoint_folder(args: Any, state: Any) -> Path:
    """Return the folder of the Trainer's checkpoint at this step."""
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"


def _rename_metrics(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return `eval_loss` as `val_loss` and `eval_accuracy` as `accuracy`."""
    renamed = {}
    for name, value in metrics.items():
        if isinstance(value, (int, float)) and name != "epoch":
            short = name.removeprefix("eval_")
            renamed["val_loss" if short == "loss" else short] = float(value)
    return renamed
