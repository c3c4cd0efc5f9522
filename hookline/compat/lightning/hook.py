"""The hook around a callback of Lightning: which of its methods is called at which site."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hookline.compat.foreign import ForeignHook, plain_part
from hookline.compat.foreign.state import decode
from hookline.compat.lightning.module import make_module
from hookline.compat.lightning.names import Names, package_of
from hookline.compat.lightning.trainer import Trainer
from hookline.engine import BaseRunner
from hookline.engine.evaluation import named_loaders

names_of = functools.lru_cache(Names)

STAGES = {"train": "fit", "val": "validate", "test": "test"}  # Lightning's names of what is run


class LightningHook(ForeignHook):
    """Drives a callback with a stand-in for `trainer`, and the run's model as `pl_module`.

    Lightning validates inside of a training epoch, so `on_train_epoch_end` comes at `after_epoch`, after the validation.
    """

    framework = "lightning"
    distributions = ("lightning", "pytorch-lightning")
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "before_train": ("on_fit_start", "on_train_start"),
        "before_train_epoch": ("on_train_epoch_start",),
        "before_train_iter": ("on_train_batch_start",),
        "after_forward": ("on_before_zero_grad", "on_before_backward"),
        "after_backward": ("on_after_backward", "on_before_optimizer_step"),
        "after_train_iter": ("on_train_batch_end", "on_after_backward"),
        "before_val_epoch": ("on_validation_epoch_start",),
        "before_val_iter": ("on_validation_batch_start",),
        "after_val_iter": ("on_validation_batch_end",),
        "after_val_epoch": ("on_validation_epoch_end",),
        "before_test_epoch": ("on_test_epoch_start",),
        "before_test_iter": ("on_test_batch_start",),
        "after_test_iter": ("on_test_batch_end",),
        "after_test_epoch": ("on_test_epoch_end",),
        "before_save_checkpoint": ("on_save_checkpoint",),
        "after_load_checkpoint": ("on_load_checkpoint",),
        "after_run": ("on_fit_end",),
        "on_exception": ("on_exception",),
    }

    def __init__(self, callback: Any) -> None:
        super().__init__(callback)
        self.names = names_of(package_of(type(callback)) or "lightning.pytorch")
        self.base = self.names.callback  # type: ignore[misc]  # there are two packages, and so two of them
        self.trainer = Trainer(self)
        self.module: Any = None
        self._refused: set[str] = set()
        self._stage: str | None = None  # what is run, as Lightning calls it
        self._several = False  # whether an evaluation is over several loaders
        self._passes = [-1, -1]  # over how many loaders an evaluation has begun to go, before and after a batch

    def before_run(self, runner: BaseRunner) -> None:
        if self.module is None or self.module.source is not runner.model:
            self.module = make_module(self, runner.model)
        self._stage = STAGES.get(runner.mode or "", "fit")
        self.trainer.begin(self._stage)
        self.callback.setup(self.trainer, self.module, self._stage)

    def before_train(self, runner: BaseRunner) -> None:
        self.trainer.enter("TRAINING")
        self.callback.on_fit_start(self.trainer, self.module)
        self.callback.on_train_start(self.trainer, self.module)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self.trainer.stepped = runner.optimizer_steps
        self.callback.on_train_epoch_start(self.trainer, self.module)

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.trainer.stepped = runner.optimizer_steps
        self.callback.on_train_batch_start(self.trainer, self.module, runner.batch, runner.batch_idx)

    def after_forward(self, runner: BaseRunner) -> None:
        if not runner.accumulating:
            self.callback.on_before_zero_grad(self.trainer, self.module, runner.optimizer)
        self.callback.on_before_backward(self.trainer, self.module, runner.outputs["loss"])

    def after_backward(self, runner: BaseRunner) -> None:
        self.callback.on_after_backward(self.trainer, self.module)
        self.callback.on_before_optimizer_step(self.trainer, self.module, runner.optimizer)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.accumulating:  # `after_backward` comes once for all of them
            self.callback.on_after_backward(self.trainer, self.module)
        self.trainer.stepped = runner.optimizer_steps if runner.accumulating else runner.optimizer_steps - 1
        self.callback.on_train_batch_end(self.trainer, self.module, runner.outputs, runner.batch, runner.batch_idx)

    def after_epoch(self, runner: BaseRunner) -> None:
        self.trainer.stepped = runner.optimizer_steps
        self.callback.on_train_epoch_end(self.trainer, self.module)
        self.trainer.step_added_schedulers()

    def before_val(self, runner: BaseRunner) -> None:
        self._begin_evaluation(runner.val_loader, "VALIDATING")
        self.callback.on_validation_start(self.trainer, self.module)

    def before_val_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_validation_epoch_start(self.trainer, self.module)

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.callback.on_validation_batch_start(self.trainer, self.module, runner.batch, *self._place(0))

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.trainer.evaluated += 1
        self.callback.on_validation_batch_end(self.trainer, self.module, runner.outputs, runner.batch, *self._place(1))

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_validation_epoch_end(self.trainer, self.module)

    def after_val(self, runner: BaseRunner) -> None:
        self.callback.on_validation_end(self.trainer, self.module)
        self.trainer.leave()

    def before_test(self, runner: BaseRunner) -> None:
        self._begin_evaluation(runner.test_loader, "TESTING")
        self.callback.on_test_start(self.trainer, self.module)

    def before_test_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_test_epoch_start(self.trainer, self.module)

    def before_test_iter(self, runner: BaseRunner) -> None:
        self.callback.on_test_batch_start(self.trainer, self.module, runner.batch, *self._place(0))

    def after_test_iter(self, runner: BaseRunner) -> None:
        self.trainer.evaluated += 1
        self.callback.on_test_batch_end(self.trainer, self.module, runner.outputs, runner.batch, *self._place(1))

    def after_test_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_test_epoch_end(self.trainer, self.module)

    def after_test(self, runner: BaseRunner) -> None:
        self.callback.on_test_end(self.trainer, self.module)
        self.trainer.leave()

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        before = dict(runner.checkpoint)
        self.callback.on_save_checkpoint(self.trainer, self.module, runner.checkpoint)
        added = {key: value for key, value in runner.checkpoint.items() if before.get(key) is not value}
        kept = plain_part(added, self._refuse)
        for key in added:
            if key in kept:
                runner.checkpoint[key] = kept[key]
            else:
                runner.checkpoint.pop(key)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        self.callback.on_load_checkpoint(self.trainer, self.module, runner.checkpoint)

    def after_train(self, runner: BaseRunner) -> None:
        self.callback.on_train_end(self.trainer, self.module)
        self.settle_files(runner)

    def after_run(self, runner: BaseRunner) -> None:
        if self._stage == "fit":
            self.callback.on_fit_end(self.trainer, self.module)

    def on_exception(self, runner: BaseRunner) -> None:
        if self._stage is not None:
            self.callback.on_exception(self.trainer, self.module, runner.exception)
            self.settle_files(runner)

    def cleanup(self, runner: BaseRunner) -> None:
        if runner.exception is None and self._stage is not None:  # Lightning tears nothing down after a failure either
            self.callback.teardown(self.trainer, self.module, self._stage)
            self.settle_files(runner)

    def site_method(self, site: str) -> Callable[..., Any] | None:
        if site == "after_epoch" and not self.has("on_train_epoch_end") and not self.has("on_train_epoch_start"):
            return None
        if site == "after_train" and not self.has("on_train_end") and not self.has("on_train_epoch_end"):
            return None
        return super().site_method(site)

    def state_dict(self) -> dict[str, Any]:
        return plain_part(self.callback.state_dict(), self._refuse)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.callback.load_state_dict(decode(dict(state)))

    def _begin_evaluation(self, loader: Any, running: str) -> None:
        self._passes = [-1, -1]
        self._several = len(named_loaders(loader)) > 1
        self.trainer.enter(running)

    def _place(self, side: int) -> tuple[int, ...]:
        """`batch_idx`, and of several loaders `dataloader_idx`: each loader's batches count from 0."""
        index = self.runner.batch_idx
        if not self._several:
            return (index,)
        self._passes[side] += index == 0
        return index, self._passes[side]

    def _refuse(self, key: str) -> None:
        if key not in self._refused:
            self._refused.add(key)
            self.warn("%r of its state is neither a tensor nor plain data and is not in the checkpoint", key)
