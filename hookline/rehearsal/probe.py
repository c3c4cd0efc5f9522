"""The hooks that a rehearsal adds: one asks for everything and measures, one compares what was loaded."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping
from typing import Any

import torch

from hookline.checkpoint import diff
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.rehearsal.findings import Finding

MOST_NAMED = 5


class Probe(BaseHook):
    """Asks for a validation, a save and the end after the first epoch; looks at losses, gradients and weights."""

    priority = Priority.LOWEST

    def __init__(self) -> None:
        self.phase = "start"
        self.findings: list[Finding] = []
        self.steps = self.evaluations = 0
        self.validated = self.saved = False
        self.after_saving: dict[str, dict[str, Any]] = {}  # the state of each hook
        self._before: dict[str, torch.Tensor] = {}
        self._without_gradient: set[str] | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self.phase = "training"
        self._before = {name: value.detach().clone() for name, value in runner.model.named_parameters() if value.requires_grad}

    def after_backward(self, runner: BaseRunner) -> None:
        missing = {name for name, value in runner.model.named_parameters() if value.requires_grad and value.grad is None}
        self._without_gradient = missing if self._without_gradient is None else self._without_gradient & missing

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.steps += 1
        loss = float(runner.outputs["loss"].detach())
        if not math.isfinite(loss):
            text = f"the loss of batch {runner.inner_iter + 1} is {loss}"
            self.findings.append(
                Finding("error", "training", text, "look at that batch, the learning rate and the precision; CheckInvalidLossHook")
            )

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._look_at_weights(runner)
        runner.request_validate()
        if runner.saver is not None:
            runner.request_save()

    def before_val(self, runner: BaseRunner) -> None:
        self.phase = "validation"

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.evaluations += 1

    def after_val_epoch(self, runner: BaseRunner) -> None:
        for name, value in runner.metrics.items():
            if not math.isfinite(value):
                self.findings.append(Finding("warning", "validation", f"{name} is {value}", "no best checkpoint can be chosen by it"))

    def after_val(self, runner: BaseRunner) -> None:
        self.phase, self.validated = "training", True

    def after_epoch(self, runner: BaseRunner) -> None:
        self.phase = "saving"
        runner.request_stop("rehearsed")

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self.saved = True
        self.after_saving = {hook.name: copy.deepcopy(hook.state_dict()) for hook in runner.hooks}

    def before_test(self, runner: BaseRunner) -> None:
        self.phase = "test"

    def _look_at_weights(self, runner: BaseRunner) -> None:
        same = [name for name, value in runner.model.named_parameters() if name in self._before and torch.equal(value, self._before[name])]
        if same and len(same) == len(self._before):
            advice = "look at the learning rate, and whether the loss depends on the model"
            self.findings.append(Finding("error", "training", "no weight has changed in this epoch", advice))
        elif self._without_gradient:
            text = f"no gradient reaches {_listed(sorted(self._without_gradient))}"
            self.findings.append(Finding("warning", "training", text, "freeze what is not to be trained (requires_grad), or use it"))


class Timer(BaseHook):
    """Measures the steps of an epoch and of its validation, and ends the run then."""

    priority = Priority.LOWEST  # the innermost around a step

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.waits: list[float] = []
        self.evaluations: list[float] = []

    def before_train_iter(self, runner: BaseRunner) -> None:
        self._began = time.perf_counter()

    def after_train_iter(self, runner: BaseRunner) -> None:
        float(runner.outputs["loss"].detach())  # waits for the device, so that its time is measured too
        self.waits.append(runner.data_time)
        self.steps.append(time.perf_counter() - self._began + runner.data_time)

    def before_val_iter(self, runner: BaseRunner) -> None:
        self._began = time.perf_counter()

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.evaluations.append(time.perf_counter() - self._began)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        runner.request_validate()
        runner.request_stop("timed")


class Comparer(BaseHook):
    """Looks whether all that a checkpoint holds is back in place, right before training goes on.

    A hook may take up again where the run that saved it was right after saving (`after_saving`): that is the same state, gone on.
    """

    priority = Priority.HIGHEST

    def __init__(self, checkpoint: Mapping[str, Any], after_saving: Mapping[str, Mapping[str, Any]]) -> None:
        self._checkpoint, self._after_saving = checkpoint, after_saving
        self.differences: list[str] | None = None

    def before_epoch(self, runner: BaseRunner) -> None:
        self._compare(runner)

    def after_train(self, runner: BaseRunner) -> None:
        self._compare(runner)  # for a run that was over already

    def _compare(self, runner: BaseRunner) -> None:
        if self.differences is not None:
            return
        saved, hooks = self._checkpoint, {hook.name: hook for hook in runner.hooks}
        found = [f"weights {text}" for text in diff(dict(saved["state_dict"]), dict(runner.model.state_dict()))]
        if isinstance(runner.optimizer, torch.optim.Optimizer) and "optimizer" in saved:
            found += [f"optimizer {text}" for text in diff(saved["optimizer"]["state"], runner.optimizer.state_dict()["state"])]
        for name, state in saved.get("hooks", {}).items():
            if name in hooks and diff(self._after_saving.get(name, {}), now := hooks[name].state_dict()):
                found += [f"{name}.{text}" for text in diff(state, now)]
        self.differences = found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
