"""Our hooks in Lightning's Trainer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lightning.pytorch import Callback

from hookline.driving import Drive
from hookline.engine import BaseRunner
from hookline.engine.length import both_lengths
from hookline.engine.registration import HookOrConfig


class HooklineCallback(Callback):  # type: ignore[misc]
    """`Trainer(callbacks=[HooklineCallback([EMAHook(), …])])`: the hooks run as in a Runner, with the Trainer's loop.

    `runner` is what they see. Its metrics are those that the module logs, and a hook's wish to stop becomes `trainer.should_stop`.
    What hooks keep (their state, an average of the weights) goes into the Trainer's checkpoints. Files of hooks go to `work_dir`,
    by default below the Trainer's folder. The Trainer steps and validates: hooks that do that (OptimizerHook, EvalHook, schedules)
    are not for here.
    """

    def __init__(self, hooks: Iterable[HookOrConfig], work_dir: Any = None) -> None:
        self.hooks = list(hooks)
        self.work_dir = work_dir
        self.runner: BaseRunner = None  # type: ignore[assignment]  # made when the fit begins
        self._loaded: dict[str, Any] | None = None
        self._in_epoch = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        length = trainer.num_training_batches if isinstance(trainer.num_training_batches, int) else None
        end: dict[str, Any] = _end_of(trainer, length)
        self.runner = runner = BaseRunner(
            pl_module,
            optimizer=trainer.optimizers[0] if len(trainer.optimizers) == 1 else None,
            hooks=self.hooks,
            **end,
            work_dir=self.work_dir or f"{trainer.default_root_dir}/hookline",
            device=pl_module.device,
        )
        runner.epoch_length = length
        runner.max_epochs, runner.max_iters = both_lengths(end.get("max_epochs"), end.get("max_iters"), length)
        kept, self._loaded = self._loaded, None
        self._drive = Drive(runner, signals=False, validated=bool(trainer.enable_validation), kept=kept)
        self._drive.__enter__()
        self._drive.watch_optimizer(before=False)  # its steps begin before the backward pass, which is a part of them there
        self._in_epoch = False

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        runner = self.runner
        runner.epoch = trainer.current_epoch
        if runner.inner_iter == runner.epoch_length:  # saved after its last batch, and for Lightning that epoch is over
            runner.inner_iter = 0
        self._in_epoch = True
        self._drive.begin_epoch()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if not self._in_epoch:  # it does not tell of the epoch in whose middle it was resumed
            self.on_train_epoch_start(trainer, pl_module)
        self._drive.begin_batch(batch)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._drive.loss(loss)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._drive.after_backward()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        last = bool(trainer.is_last_batch)
        going_on = self._drive.end_batch(last=last)
        if last:
            self._drive.end_training_part()
        self._stop(trainer, going_on)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if self._fits(trainer):
            self._drive.begin_validation()

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if self._fits(trainer):
            self.runner.call_hook("after_val_iter", batch_idx=batch_idx, batch=batch)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._fits(trainer):
            self._drive.end_validation(trainer.callback_metrics)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        if self._in_epoch:  # resumed at the end of an epoch, it tells of that end once more
            self._in_epoch = False
            self._stop(trainer, self._drive.end_epoch(training_part=False))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._drive.__exit__(None, None, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.runner is not None and self.runner.running:
            self._drive.__exit__(type(exception), exception, exception.__traceback__)

    def state_dict(self) -> dict[str, Any]:
        return {} if self.runner is None else self._drive.keep()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._loaded = state_dict

    def _fits(self, trainer: Any) -> bool:
        """Whether this is a validation inside of a fit, and not the trial run before it."""
        return self.runner is not None and self.runner.running and not trainer.sanity_checking

    def _stop(self, trainer: Any, going_on: bool) -> None:
        if not going_on:
            trainer.should_stop = True


def _end_of(trainer: Any, length: int | None) -> dict[str, int]:
    """When the Trainer ends, as a runner's `max_epochs` or `max_iters`: iterations are batches, and its steps the optimizer's."""
    epochs = trainer.max_epochs if trainer.max_epochs is not None and trainer.max_epochs > 0 else None
    found = {} if epochs is None else {"max_epochs": epochs}
    if trainer.max_steps <= 0:
        return found
    together = trainer.accumulate_grad_batches
    if length is None:
        return found or {"max_iters": trainer.max_steps * together}
    groups = -(-length // together)  # the last one of an epoch may be smaller
    iters = trainer.max_steps // groups * length + min(trainer.max_steps % groups * together, length)
    return {"max_iters": iters} if epochs is None or iters < epochs * length else found
