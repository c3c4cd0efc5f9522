"""Stand-ins for the parts of Lightning's Trainer that callbacks access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from hookline.compat.foreign import Facade
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.compat.lightning.trainer import Trainer


class Part(Facade):
    """A stand-in for an attribute of the trainer."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer._hook)
        self._trainer = trainer


class Strategy(Part):
    """The strategy of a run with one process; collective operations of several are refused."""

    stands_for = "trainer.strategy"

    @property
    def root_device(self) -> torch.device:
        return self._trainer._runner.device

    @property
    def model(self) -> Any:
        return self._trainer.model

    lightning_module = model

    @property
    def optimizers(self) -> list[Any]:
        return self._trainer.optimizers

    @property
    def is_global_zero(self) -> bool:
        return self._trainer.is_global_zero

    @property
    def world_size(self) -> int:
        return self._trainer.world_size

    def broadcast(self, value: Any, src: int = 0) -> Any:
        self._require_one_process("broadcast")
        return value

    def reduce(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        self._require_one_process("reduce")
        return value

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:
        self._require_one_process("reduce_boolean_decision")
        return decision

    def barrier(self, name: str | None = None) -> None:
        self._require_one_process("barrier")

    def remove_checkpoint(self, filepath: Any) -> None:
        self._hook.files.remove(filepath)

    def _require_one_process(self, name: str) -> None:
        if self._trainer.world_size > 1:
            raise HooklineError(
                f"trainer.strategy.{name} is not available with several processes",
                component=self._hook.name,
            )


class FitLoop(Part):
    """The loop of the training, whose length is fixed."""

    stands_for = "trainer.fit_loop"

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        self.epoch_loop = EpochLoop(trainer)

    @property
    def max_epochs(self) -> int:
        return self._trainer.max_epochs

    @property
    def max_batches(self) -> int | float:
        return self._trainer.num_training_batches

    @property
    def total_batch_idx(self) -> int:
        return self._trainer._runner.iter

    @property
    def _skip_backward(self) -> bool:
        return False

    @_skip_backward.setter
    def _skip_backward(self, wanted: bool) -> None:
        if wanted:
            raise HooklineError(
                "cannot skip the backward pass of a training iteration; use PreciseBNHook",
                component=self._hook.name,
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("max_epochs", "max_batches"):
            raise HooklineError(
                f"cannot change {name!r}: the length of a run is fixed",
                component=self._hook.name,
                parameter=name,
                value=value,
            )
        super().__setattr__(name, value)

    def _should_accumulate(self) -> bool:
        return self._trainer._runner.loop.accumulating


class EpochLoop(Part):
    """The loop over the batches of a training epoch."""

    stands_for = "trainer.fit_loop.epoch_loop"

    @property
    def _batches_that_stepped(self) -> int:
        return self._trainer.steps_before_batch

    @property
    def global_step(self) -> int:
        return self._trainer.global_step

    @property
    def batch_idx(self) -> int:
        return self._trainer._runner.batch_idx

    @property
    def batch_progress(self) -> Any:
        return BatchProgress(self._trainer)

    @property
    def val_loop(self) -> Any:
        return EvaluationLoop(self._trainer)

    def _should_check_val_epoch(self) -> bool:
        if not self._trainer.enable_validation:
            return False
        interval = self._trainer.check_val_every_n_epoch
        return interval is None or (self._trainer.current_epoch + 1) % interval == 0


class BatchProgress(Part):
    """The counters of batches: those of the training, or of an evaluation while it runs."""

    stands_for = "batch_progress"

    @property
    def is_last_batch(self) -> bool:
        return self._trainer.is_last_batch

    @property
    def total(self) -> Any:
        return self

    current = total

    @property
    def ready(self) -> int:
        if self._trainer.evaluating:
            return self._trainer.evaluated_batches
        return self._trainer._runner.iter + 1


class EvaluationLoop(Part):
    """The loop of a validation or test."""

    stands_for = "trainer._evaluation_loop"

    @property
    def _has_run(self) -> bool:
        return bool(self._trainer._runner.metrics)

    @property
    def batch_progress(self) -> Any:
        return BatchProgress(self._trainer)


class LoggerConnector(Part):
    """The connection to the loggers."""

    stands_for = "trainer._logger_connector"

    @property
    def should_update_logs(self) -> bool:
        trainer = self._trainer
        step = trainer.steps_before_batch + 1
        if trainer.evaluating:
            step = trainer._runner.batch_idx + 1
        return step % trainer.log_every_n_steps == 0 or trainer.should_stop

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        for logger in self._trainer.loggers:
            logger.log_metrics(metrics, step=step)


class AcceleratorConnector(Part):
    """The connection to the accelerator."""

    stands_for = "trainer._accelerator_connector"

    @property
    def is_distributed(self) -> bool:
        return self._trainer.world_size > 1
