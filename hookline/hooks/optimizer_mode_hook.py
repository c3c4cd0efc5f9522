"""Switch optimizers that have a training and an evaluation mode."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.optim.modes import OptimizerModes


@HOOKS.register()
@dataclass
class OptimizerModeHook(BaseHook):
    """Switch optimizers with `train()` and `eval()`, such as schedule-free ones.

    Steps run in training mode. Validations, tests, the weights in checkpoints and the model after
    the run are in evaluation mode. Runs with such an optimizer have this hook automatically.

    State:
        The checkpoint holds the evaluation weights as `state_dict`, and inside an epoch also those
        that training continues with, as `training_weights`.

    Example:
        ```yaml
        hooks:
          - {type: OptimizerModeHook}
        ```
    """

    priority = Priority.HIGHEST  # Before EMAHook, which exchanges the weights of the model.

    def __post_init__(self) -> None:
        self._optimizer: object = None
        self._modes = OptimizerModes(None)

    def before_run(self, runner: BaseRunner) -> None:
        if runner.optimizer is not self._optimizer:
            self._optimizer = runner.optimizer
            self._modes = OptimizerModes(runner.optimizer)

    def before_train_iter(self, runner: BaseRunner) -> None:
        if not self._modes.is_training:
            runner.checkpointer.wait_for_copy()  # Switching changes the weights.
            self._modes.train()

    def before_val(self, runner: BaseRunner) -> None:
        if not self._modes.is_training:
            return
        runner.checkpointer.wait_for_copy()
        # A validation that only shows results of a resumed run must not round its weights.
        is_exact = runner.loop.resuming
        self._modes.eval(is_exact)
        if is_exact:
            runner.evaluation.on_end(self._modes.train)

    before_test = before_predict = before_val

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        if not self._modes.is_training:
            return
        ids = {id(each) for each in self._modes.parameters}
        state = runner.model.state_dict(keep_vars=True)
        switched = {name: value for name, value in state.items() if id(value) in ids}
        training = {name: value.detach().clone() for name, value in switched.items()}
        self._modes.eval(exact=True)
        evaluation = {name: value.detach().clone() for name, value in switched.items()}
        self._modes.train()
        runner.checkpoint["state_dict"] = {**runner.checkpoint["state_dict"], **evaluation}
        runner.checkpoint["training_weights"] = training

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        assert runner.checkpoint is not None
        if not runner.loop.resuming:
            self._modes.forget()
            return
        weights = runner.checkpoint.get("training_weights", {})
        state = runner.model.state_dict(keep_vars=True)
        with torch.no_grad():
            for name, value in weights.items():
                state[name].copy_(value)
        # The state of some optimizers lacks their mode.
        self._modes.resume(is_training=bool(weights))

    def after_train(self, runner: BaseRunner) -> None:
        if self._modes.is_training:
            self._modes.eval(exact=True)  # A second training may continue inside the epoch.

    cleanup = after_train
