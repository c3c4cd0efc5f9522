"""The hook around a callback of Lightning: which of its methods is called at which site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hookline.batches import named_loaders
from hookline.compat.foreign import ForeignHook
from hookline.compat.foreign.state import decode
from hookline.compat.lightning.classes import find_package, load_classes
from hookline.compat.lightning.module import make_module
from hookline.compat.lightning.trainer import Trainer
from hookline.engine import BaseRunner

STAGES = {"train": "fit", "val": "validate", "test": "test"}  # Lightning's names of the modes


class LightningHook(ForeignHook):
    """Drives a callback with a stand-in for `trainer`, and the run's model as `pl_module`.

    Lightning validates inside a training epoch, so `on_train_epoch_end` is called at `after_epoch`,
    after the validation.
    """

    framework = "lightning"
    distributions = ("lightning", "pytorch-lightning")
    expected = "an instance of Lightning's Callback"
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
        "after_epoch": ("on_train_epoch_start", "on_train_epoch_end"),
        "after_train": ("on_train_epoch_end", "on_train_end"),
        "after_run": ("on_fit_end",),
        "on_exception": ("on_exception",),
    }

    def __init__(self, callback: Any) -> None:
        super().__init__(callback)
        self.classes = load_classes(find_package(type(callback)) or "lightning.pytorch")
        self.base = self.classes.callback
        self.trainer = Trainer(self)
        self.module: Any = None
        self._stage: str | None = None  # Lightning's name of the run's mode
        self._has_several_loaders = False  # of the evaluation
        # The index of the evaluation's loader, at the sites before and after a batch.
        self._loader_index = {"before": -1, "after": -1}

    @classmethod
    def is_callback(cls, kind: type) -> bool:
        """Return whether a class is derived from the Callback of one of Lightning's packages."""
        return find_package(kind) is not None

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
        self.trainer.steps_before_batch = runner.optimizer_steps
        self.callback.on_train_epoch_start(self.trainer, self.module)

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.trainer.steps_before_batch = runner.optimizer_steps
        self.callback.on_train_batch_start(
            self.trainer, self.module, runner.batch, runner.batch_idx
        )

    def after_forward(self, runner: BaseRunner) -> None:
        if not runner.loop.accumulating:
            self.callback.on_before_zero_grad(self.trainer, self.module, runner.optimizer)
        self.callback.on_before_backward(self.trainer, self.module, runner.outputs["loss"])

    def after_backward(self, runner: BaseRunner) -> None:
        self.callback.on_after_backward(self.trainer, self.module)
        self.callback.on_before_optimizer_step(self.trainer, self.module, runner.optimizer)

    def after_train_iter(self, runner: BaseRunner) -> None:
        steps = runner.optimizer_steps
        if runner.loop.accumulating:
            # The site after_backward is called once for all accumulated iterations.
            self.callback.on_after_backward(self.trainer, self.module)
        else:
            steps -= 1
        self.trainer.steps_before_batch = steps
        self.callback.on_train_batch_end(
            self.trainer, self.module, runner.outputs, runner.batch, runner.batch_idx
        )

    def after_epoch(self, runner: BaseRunner) -> None:
        self.trainer.steps_before_batch = runner.optimizer_steps
        self.callback.on_train_epoch_end(self.trainer, self.module)
        self.trainer.step_added_schedulers()

    def before_val(self, runner: BaseRunner) -> None:
        self._begin_evaluation(runner.val_loader, "VALIDATING")
        self.callback.on_validation_start(self.trainer, self.module)

    def before_val_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_validation_epoch_start(self.trainer, self.module)

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.callback.on_validation_batch_start(
            self.trainer, self.module, runner.batch, *self._batch_position("before")
        )

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.trainer.evaluated_batches += 1
        self.callback.on_validation_batch_end(
            self.trainer, self.module, runner.outputs, runner.batch, *self._batch_position("after")
        )

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_validation_epoch_end(self.trainer, self.module)

    def after_val(self, runner: BaseRunner) -> None:
        self.callback.on_validation_end(self.trainer, self.module)
        self.trainer.leave_evaluation()

    def before_test(self, runner: BaseRunner) -> None:
        self._begin_evaluation(runner.test_loader, "TESTING")
        self.callback.on_test_start(self.trainer, self.module)

    def before_test_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_test_epoch_start(self.trainer, self.module)

    def before_test_iter(self, runner: BaseRunner) -> None:
        self.callback.on_test_batch_start(
            self.trainer, self.module, runner.batch, *self._batch_position("before")
        )

    def after_test_iter(self, runner: BaseRunner) -> None:
        self.trainer.evaluated_batches += 1
        self.callback.on_test_batch_end(
            self.trainer, self.module, runner.outputs, runner.batch, *self._batch_position("after")
        )

    def after_test_epoch(self, runner: BaseRunner) -> None:
        self.callback.on_test_epoch_end(self.trainer, self.module)

    def after_test(self, runner: BaseRunner) -> None:
        self.callback.on_test_end(self.trainer, self.module)
        self.trainer.leave_evaluation()

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        before = dict(runner.checkpoint)
        self.callback.on_save_checkpoint(self.trainer, self.module, runner.checkpoint)
        added = {}
        for key, value in runner.checkpoint.items():
            if before.get(key) is not value:
                added[key] = value
        for key in added:
            del runner.checkpoint[key]
        runner.checkpoint.update(self.plain_state(added))

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
        # Lightning does not call `teardown` after a failure either.
        if runner.exception is None and self._stage is not None:
            self.callback.teardown(self.trainer, self.module, self._stage)
            self.settle_files(runner)

    def state_dict(self) -> dict[str, Any]:
        return self.plain_state(self.callback.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.callback.load_state_dict(decode(dict(state)))

    def _begin_evaluation(self, loader: Any, running_stage: str) -> None:
        self._loader_index = {"before": -1, "after": -1}
        self._has_several_loaders = len(named_loaders(loader)) > 1
        self.trainer.enter(running_stage)

    def _batch_position(self, side: str) -> tuple[int, ...]:
        """Return `batch_idx`, and `dataloader_idx` if there are several loaders.

        The batches of each loader count from 0.
        """
        batch_idx = self.runner.batch_idx
        if not self._has_several_loaders:
            return (batch_idx,)
        if batch_idx == 0:
            self._loader_index[side] += 1
        return batch_idx, self._loader_index[side]
