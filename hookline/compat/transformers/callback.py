"""Our hooks in Hugging Face's Trainer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hookline.checkpoint import write_checkpoint
from hookline.driving import Drive
from hookline.engine import BaseRunner
from hookline.engine.capture import COUNTERS
from hookline.engine.registration import HookOrConfig

FILE = "hookline.pth"  # in the Trainer's checkpoint folder, beside its own files


class HooklineCallback(TrainerCallback):  # type: ignore[misc]
    """`Trainer(…, callbacks=[HooklineCallback([EMAHook(), …])])`: the hooks run as in a Runner, with the Trainer's loop.

    `runner` is what they see: its iterations are the Trainer's optimizer steps, its metrics those of the Trainer's evaluation
    (`eval_loss` is `val_loss`). A hook's wish to stop, or to validate, becomes one of the Trainer's. What hooks keep (their state,
    an average of the weights) goes into the Trainer's checkpoint folders, as `hookline.pth`. Files of hooks go to `work_dir`, by
    default below the Trainer's folder. The Trainer steps and validates: hooks that do that (OptimizerHook, EvalHook, schedules)
    are not for here. It tells its callbacks nothing of a failure: `with callback: trainer.train()` does.
    """

    def __init__(self, hooks: Iterable[HookOrConfig], work_dir: Any = None) -> None:
        self.hooks = list(hooks)
        self.work_dir = work_dir
        self.runner: BaseRunner = None  # type: ignore[assignment]  # made when the training begins
        self._validating = self._epoch_waits = False

    def __enter__(self) -> HooklineCallback:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and self._running:
            self._seen.remove()
            self._drive.__exit__(kind, error, trace)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **others: Any) -> None:
        if self._running:
            self._abandon(model if state.global_step else None)
        self._validating = self._epoch_waits = False
        self.runner = runner = BaseRunner(
            model,
            optimizer=getattr(optimizer, "optimizer", optimizer),
            hooks=self.hooks,
            max_epochs=max(1, math.ceil(state.num_train_epochs)),
            work_dir=self.work_dir or f"{args.output_dir}/hookline",
            device=next(model.parameters()).device,
            seed=None,
        )
        batches = _length(others.get("train_dataloader"))
        runner.epoch_length = length = None if batches is None else -(-batches // args.gradient_accumulation_steps)
        runner.max_iters = state.max_steps
        runner.iter = runner.optimizer_steps = state.global_step
        runner.epoch, runner.inner_iter = divmod(state.global_step, length) if length else (math.floor(state.epoch or 0), 0)
        if args.ignore_data_skip:
            runner.inner_iter = 0
        kept = self._kept(args, state) if state.global_step else None
        self._drive = Drive(runner, signals=False, validated=args.eval_strategy != "no", kept=kept)
        self._drive.__enter__()
        self._drive.watch_optimizer(before=False)  # the Trainer itself tells when gradients are complete, and clipped
        self._seen = model.register_forward_hook(self._see, with_kwargs=True)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self._running:
            kept, folder = self._drive.keep(), _folder(args, state)
            if args.should_save and folder.is_dir():
                write_checkpoint(kept, folder / FILE)

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
        if not self._running:
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

    @property
    def _running(self) -> bool:
        return self.runner is not None and self.runner.running

    def _abandon(self, resumed: Any) -> None:
        """Tidy up after a training that failed. The weights that a model was resumed with since then stay."""
        weights = None if resumed is None else {name: value.clone() for name, value in resumed.state_dict().items()}
        self._seen.remove()
        self._drive.abandon()
        if resumed is not None:
            resumed.load_state_dict(weights)

    def _kept(self, args: Any, state: Any) -> dict[str, Any] | None:
        """What hooks kept in the checkpoint that the Trainer resumes from, with its place in the data, which is the Trainer's."""
        given = [Path(args.resume_from_checkpoint)] if isinstance(args.resume_from_checkpoint, str) else []
        path = next((folder / FILE for folder in (*given, _folder(args, state)) if (folder / FILE).is_file()), None)
        if path is None:
            self.runner.logger.warning(
                "HooklineCallback: resumed at step %d, and there is no %s: hooks begin anew", state.global_step, _folder(args, state) / FILE
            )
            return None
        kept: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return {**kept, "meta": {**kept["meta"], **{name: getattr(self.runner, name) for name in COUNTERS}}}

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
            if loss is None:  # the Trainer computes it and tells no one: better none than that of a batch before
                self.runner.outputs = {}
            else:
                self._drive.loss(loss)


def _folder(args: Any, state: Any) -> Path:
    """Where the Trainer saves now, or has saved what it resumes from."""
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"


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
