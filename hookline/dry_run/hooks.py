"""The hooks of a dry run: they request every phase, time steps and compare a resumed run."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookline.checkpoint import diff
from hookline.checkpoint.trainable import is_partial
from hookline.dry_run.findings import Finding
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.module_names import named_parameters

MAX_LISTED_PARAMETERS = 5

HookStates = dict[str, dict[str, Any]]


class ProbeHook(BaseHook):
    """Requests a validation, a save and the end of the run after the first epoch.

    Checks losses, gradients, weights and metrics, and records the progress.
    """

    priority = Priority.LOWEST

    def __init__(self) -> None:
        self.phase = "start"
        self.findings: list[Finding] = []
        self.train_batches = 0
        self.val_batches = 0
        self.validated = False
        self.saved = False
        self.states_after_save: HookStates = {}
        # Whether the model has computed its output, and loss or metrics have not used it yet.
        self.model_finished = False
        self._initial_weights: dict[str, torch.Tensor] = {}
        self._without_gradient: set[str] | None = None
        self._forward_handle: RemovableHandle | None = None

    def before_run(self, runner: BaseRunner) -> None:
        self._forward_handle = runner.model.register_forward_hook(self._mark_model_finished)

    def before_train(self, runner: BaseRunner) -> None:
        self.phase = "training"
        for name, parameter in _trained_parameters(runner).items():
            self._initial_weights[name] = parameter.detach().clone()

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.model_finished = False

    def after_forward(self, runner: BaseRunner) -> None:
        self.model_finished = False

    def after_backward(self, runner: BaseRunner) -> None:
        missing = set()
        for name, parameter in _trained_parameters(runner).items():
            if parameter.grad is None:
                missing.add(name)
        if self._without_gradient is not None:
            missing &= self._without_gradient
        self._without_gradient = missing

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.train_batches += 1
        loss = float(runner.outputs["loss"].detach())
        if not math.isfinite(loss):
            text = f"the loss of batch {runner.inner_iter + 1} is {loss}"
            advice = (
                "check this batch, the learning rate and the precision; see CheckInvalidLossHook"
            )
            self.findings.append(Finding("error", "training", text, advice))

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._check_weights(runner)
        runner.request_validate()
        if runner.checkpointer.is_open:
            runner.request_save()

    def before_val(self, runner: BaseRunner) -> None:
        self.phase = "validation"

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.model_finished = False

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.model_finished = False
        self.val_batches += 1

    def after_val_epoch(self, runner: BaseRunner) -> None:
        for name, value in runner.metrics.items():
            if not math.isfinite(value):
                advice = "the best checkpoint cannot be chosen by it"
                self.findings.append(Finding("warning", "validation", f"{name} is {value}", advice))

    def after_val(self, runner: BaseRunner) -> None:
        self.phase = "training"
        self.validated = True

    def after_epoch(self, runner: BaseRunner) -> None:
        self.phase = "saving"
        runner.request_stop("the dry run is done")

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self.saved = True
        for hook in runner.hooks:
            self.states_after_save[hook.name] = copy.deepcopy(hook.state_dict())

    def before_test(self, runner: BaseRunner) -> None:
        self.phase = "test"

    def cleanup(self, runner: BaseRunner) -> None:
        if self._forward_handle is not None:
            self._forward_handle.remove()
            self._forward_handle = None

    def _mark_model_finished(self, *arguments: Any) -> None:
        self.model_finished = True

    def _check_weights(self, runner: BaseRunner) -> None:
        unchanged = []
        for name, parameter in named_parameters(runner.model):
            initial = self._initial_weights.get(name)
            if initial is not None and torch.equal(parameter, initial):
                unchanged.append(name)
        if unchanged and len(unchanged) == len(self._initial_weights):
            text = "no weight has changed in this epoch"
            advice = "check the learning rate, and whether the loss depends on the model"
            self.findings.append(Finding("error", "training", text, advice))
        elif self._without_gradient:
            text = f"no gradient reaches {_list_names(self._without_gradient)}"
            advice = "use these parameters, or freeze them with requires_grad=False"
            self.findings.append(Finding("warning", "training", text, advice))


class StepTimerHook(BaseHook):
    """Times the steps of one epoch and of its validation, and then stops the run."""

    priority = Priority.LOWEST  # Closest to the step: the time of other hooks is not counted.

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.waits: list[float] = []
        self.evaluations: list[float] = []
        self._start = 0.0

    def before_train_iter(self, runner: BaseRunner) -> None:
        self._start = time.perf_counter()

    def after_train_iter(self, runner: BaseRunner) -> None:
        float(runner.outputs["loss"].detach())  # Wait for the device: its time counts too.
        self.waits.append(runner.loop.data_time)
        self.steps.append(time.perf_counter() - self._start + runner.loop.data_time)

    def before_val_iter(self, runner: BaseRunner) -> None:
        self._start = time.perf_counter()

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.evaluations.append(time.perf_counter() - self._start)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        runner.request_validate()
        runner.request_stop("all steps are timed")


class ResumeCheckHook(BaseHook):
    """Compares a resumed runner with its checkpoint, right before training continues.

    Args:
        checkpoint: The content of the checkpoint.
        states_after_save: The states of the hooks right after the save. A hook may change its
            state while it saves, and restore either of the two.
    """

    priority = Priority.HIGHEST

    def __init__(
        self, checkpoint: Mapping[str, Any], states_after_save: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.differences: list[str] = []
        self._checkpoint = checkpoint
        self._states_after_save = states_after_save
        self._compared = False

    def before_epoch(self, runner: BaseRunner) -> None:
        self._compare_once(runner)

    def after_train(self, runner: BaseRunner) -> None:
        self._compare_once(runner)  # A finished run has no further epoch.

    def _compare_once(self, runner: BaseRunner) -> None:
        if not self._compared:
            self._compared = True
            self._compare_weights(runner)
            self._compare_optimizer(runner)
            self._compare_hooks(runner)

    def _compare_weights(self, runner: BaseRunner) -> None:
        saved = dict(self._checkpoint["state_dict"])
        found = dict(runner.model.state_dict())
        if is_partial(self._checkpoint):  # The resume has compared the hash of the rest.
            found = {name: value for name, value in found.items() if name in saved}
        for text in diff(saved, found):
            self.differences.append(f"weights {text}")

    def _compare_optimizer(self, runner: BaseRunner) -> None:
        if isinstance(runner.optimizer, torch.optim.Optimizer) and "optimizer" in self._checkpoint:
            saved = self._checkpoint["optimizer"]["state"]
            for text in diff(saved, runner.optimizer.state_dict()["state"]):
                self.differences.append(f"optimizer {text}")

    def _compare_hooks(self, runner: BaseRunner) -> None:
        saved_states = self._checkpoint.get("hooks", {})
        for hook in runner.hooks:
            if hook.name not in saved_states:
                continue
            state = hook.state_dict()
            if diff(self._states_after_save.get(hook.name, {}), state):
                for text in diff(saved_states[hook.name], state):
                    self.differences.append(f"{hook.name}.{text}")


def _trained_parameters(runner: BaseRunner) -> dict[str, torch.nn.Parameter]:
    parameters = {}
    for name, parameter in named_parameters(runner.model):
        if parameter.requires_grad:
            parameters[name] = parameter
    return parameters


def _list_names(names: set[str]) -> str:
    listed = ", ".join(sorted(names)[:MAX_LISTED_PARAMETERS])
    rest = len(names) - MAX_LISTED_PARAMETERS
    return f"{listed} and {rest} more" if rest > 0 else listed
