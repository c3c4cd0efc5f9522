"""Hooks of Hookline in Lightning's Trainer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lightning.pytorch import Callback

from hookline.driver import Drive
from hookline.engine import BaseRunner
from hookline.engine.manager import HookOrConfig


class HooklineCallback(Callback):  # type: ignore[misc]
    """A callback that runs hooks in the Trainer's loop, as a Runner does.

    Hooks see `runner`, with the metrics that the module logs. A request to stop becomes
    `trainer.should_stop`. The state of hooks goes into the Trainer's checkpoints.

    The Trainer steps the optimizer and decides when to validate, so hooks that do this
    (OptimizerHook, EvalHook) are refused.

    Args:
        hooks: Hooks or their configs.
        work_dir: The directory for files of hooks; `hookline` in the Trainer's root by default.

    Example:
        trainer = Trainer(callbacks=[HooklineCallback([EMAHook(), CheckpointHook()])])
    """

    def __init__(self, hooks: Iterable[HookOrConfig], work_dir: Any = None) -> None:
        self.hooks = list(hooks)
        self.work_dir = work_dir
        self.runner: BaseRunner = None  # type: ignore[assignment]  # made when the fit begins
        self._resume_state: dict[str, Any] | None = None
        self._in_epoch = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        length = trainer.num_training_batches
        if not isinstance(length, int):
            length = None  # infinite
        optimizer = trainer.optimizers[0] if len(trainer.optimizers) == 1 else None
        self.runner = BaseRunner(
            pl_module,
            optimizer=optimizer,
            hooks=self.hooks,
            work_dir=self.work_dir or f"{trainer.default_root_dir}/hookline",
            device=pl_module.device,
            **_run_length(trainer, length),
        )
        self.runner.epoch_length = length
        self.runner.loop.update_length()
        state, self._resume_state = self._resume_state, None
        self._drive = Drive(
            self.runner,
            handle_signals=False,
            owner_validates=bool(trainer.enable_validation),
            resume_state=state,
        )
        self._drive.__enter__()
        # Lightning's step begins before the backward pass: on_before_optimizer_step comes after it.
        self._drive.follow_optimizer(before=False)
        self._in_epoch = False

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        runner = self.runner
        runner.epoch = trainer.current_epoch
        if runner.inner_iter == runner.epoch_length:
            runner.inner_iter = 0  # saved after the last batch: to Lightning that epoch is over
        self._in_epoch = True
        self._drive.begin_epoch()

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._in_epoch:  # Lightning does not report an epoch that it resumes in the middle
            self.on_train_epoch_start(trainer, pl_module)
        self._drive.begin_batch(batch)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._drive.loss(loss)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._drive.after_backward()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        is_last = bool(trainer.is_last_batch)
        should_continue = self._drive.end_batch(last=is_last)
        if is_last:
            self._drive.end_train_epoch()
        self._stop_unless(should_continue, trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._is_in_fit(trainer):
            self._drive.begin_validation()

    def on_validation_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if self._is_in_fit(trainer):
            self.runner.call_hook("before_val_iter", batch_idx=batch_idx, batch=batch)

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if self._is_in_fit(trainer):
            self.runner.outputs = outputs if isinstance(outputs, dict) else {}
            self.runner.call_hook("after_val_iter", batch_idx=batch_idx, batch=batch)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._is_in_fit(trainer):
            self._drive.end_validation(trainer.callback_metrics)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        # Resumed after the last batch of an epoch, Lightning reports the end of that epoch again.
        if self._in_epoch:
            self._in_epoch = False
            self._stop_unless(self._drive.end_epoch(train_epoch_ended=True), trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._drive.__exit__(None, None, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.runner is not None and self.runner.loop.is_running:
            self._drive.__exit__(type(exception), exception, exception.__traceback__)

    def state_dict(self) -> dict[str, Any]:
        return {} if self.runner is None else self._drive.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._resume_state = state_dict

    def _is_in_fit(self, trainer: Any) -> bool:
        """Return whether a validation is a part of `fit`, and not the sanity check before it."""
        return (
            self.runner is not None and self.runner.loop.is_running and not trainer.sanity_checking
        )

    def _stop_unless(self, should_continue: bool, trainer: Any) -> None:
        if not should_continue:
            trainer.should_stop = True


def _run_length(trainer: Any, epoch_length: int | None) -> dict[str, Any]:
    """Return the length of a fit as `max_epochs` or `max_iters` of a runner.

    The Trainer counts steps of the optimizer; a runner counts batches.
    """
    max_epochs = trainer.max_epochs
    in_epochs: dict[str, Any] = {}
    if max_epochs is not None and max_epochs > 0:
        in_epochs = {"max_epochs": max_epochs}
    if trainer.max_steps <= 0:
        return in_epochs
    per_step = trainer.accumulate_grad_batches
    if epoch_length is None:
        return in_epochs or {"max_iters": trainer.max_steps * per_step}
    steps_per_epoch = -(-epoch_length // per_step)  # the last step of an epoch may have less
    epochs, steps = divmod(trainer.max_steps, steps_per_epoch)
    max_iters = epochs * epoch_length + min(steps * per_step, epoch_length)
    if in_epochs and max_iters >= max_epochs * epoch_length:
        return in_epochs
    return {"max_iters": max_iters}
