"""Our hooks in Hugging Face's Trainer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from transformers import TrainerCallback

from hookline.driving import Drive
from hookline.engine import BaseRunner
from hookline.engine.registration import HookOrConfig


class HooklineCallback(TrainerCallback):  # type: ignore[misc]
    """`Trainer(…, callbacks=[HooklineCallback([EMAHook(), …])])`: the hooks run as in a Runner, with the Trainer's loop.

    `runner` is what they see: its iterations are the Trainer's optimizer steps, its metrics those of the Trainer's evaluation
    (`eval_loss` is `val_loss`). A hook's wish to stop, or to validate, becomes one of the Trainer's. Files of hooks go to
    `work_dir`, by default below the Trainer's folder. The Trainer steps and validates: hooks that do that (OptimizerHook, EvalHook,
    schedules) are not for here.
    """

    def __init__(self, hooks: Iterable[HookOrConfig], work_dir: Any = None) -> None:
        self.hooks = list(hooks)
        self.work_dir = work_dir
        self.runner: BaseRunner = None  # type: ignore[assignment]  # made when the training begins
        self._validating = self._epoch_waits = False

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **others: Any) -> None:
        self.runner = BaseRunner(
            model,
            optimizer=getattr(optimizer, "optimizer", optimizer),
            hooks=self.hooks,
            max_epochs=max(1, math.ceil(state.num_train_epochs)),
            work_dir=self.work_dir or f"{args.output_dir}/hookline",
            device=next(model.parameters()).device,
            seed=None,
        )
        batches = _length(others.get("train_dataloader"))
        self.runner.epoch_length = None if batches is None else -(-batches // args.gradient_accumulation_steps)
        self.runner.max_iters = state.max_steps
        self.runner.iter = self.runner.optimizer_steps = state.global_step
        self._drive = Drive(self.runner, signals=False, validated=args.eval_strategy != "no")
        self._drive.__enter__()
        self._drive.watch_optimizer(before=False)  # the Trainer itself tells when gradients are complete, and clipped
        self._seen = model.register_forward_hook(self._see, with_kwargs=True)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.runner.epoch = math.floor(state.epoch or 0)
        self._drive.begin_epoch()

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._drive.begin_batch()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._drive.after_backward()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        going_on = self._drive.end_batch()
        self._stop(control, going_on)
        self._expect_validation(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._drive.end_training_part()
        self._epoch_waits = True
        self._expect_validation(control)
        if not control.should_evaluate:
            self._end_epoch(control)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any] | None = None, **others: Any) -> None:
        if self.runner is None or not self.runner.running:
            return
        if not self._validating:  # asked for after we were asked: it was with the model's own weights
            self._drive.begin_validation()
        self._validating = False
        self._drive.end_validation(_names(metrics or {}))
        if self._epoch_waits:
            self._end_epoch(control)
        elif self.runner.seam.pending:
            self.runner.seam.settle(self.runner)
            self._stop(control, self.runner.stop_reason is None)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self._epoch_waits:
            self._end_epoch(control)
        self._seen.remove()
        self._drive.__exit__(None, None, None)

    def _end_epoch(self, control: Any) -> None:
        self._epoch_waits = False
        self._stop(control, self._drive.end_epoch(training_part=False))

    def _expect_validation(self, control: Any) -> None:
        """The Trainer tells no one that it is about to evaluate; it has decided to by now, and does so next."""
        if control.should_evaluate and not self._validating:
            self._validating = True
            self._drive.begin_validation()

    def _stop(self, control: Any, going_on: bool) -> None:
        if not going_on:
            control.should_training_stop = True

    def _see(self, model: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        """Note batch and loss as they go through the model: the Trainer tells its callbacks neither."""
        if model.training:
            self.runner.batch = kwargs or args
            loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
            if loss is not None:
                self._drive.loss(loss)


def _names(metrics: Mapping[str, Any]) -> dict[str, float]:
    """`eval_loss` as `val_loss`, `eval_accuracy` as `accuracy`."""
    numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, (int, float)) and name != "epoch"}
    found = {name.removeprefix("eval_"): value for name, value in numbers.items()}
    return {"val_loss" if name == "loss" else name: value for name, value in found.items()}


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None
