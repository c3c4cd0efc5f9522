"""TrainingArguments, TrainerState and TrainerControl, which all callbacks of a run share."""

from __future__ import annotations

import math
import shutil
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hookline.checkpoint import write_checkpoint
from hookline.compat.foreign import AliasedMetrics
from hookline.compat.foreign.facade import missing_attribute
from hookline.compat.foreign.steps import accumulation_steps, count_optimizer_steps, find_hook
from hookline.engine import BaseRunner
from hookline.hooks import CheckpointHook, EvalHook, LoggerHook
from hookline.metrics.direction import infer_direction
from hookline.metrics.results import find_name

DEFAULT_LOGGING_STEPS = 500  # the Trainer's

_shared_states: weakref.WeakKeyDictionary[BaseRunner, SharedState] = weakref.WeakKeyDictionary()


class State(TrainerState):  # type: ignore[misc]
    """A real TrainerState; the error for a missing attribute names the callback."""

    stands_for = "state"

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute(self, name)


class EvalMetrics(AliasedMetrics):
    """The results of an evaluation, `eval_…`, found by any of a metric's names."""

    def find(self, name: str) -> str | None:
        """Return the key of a metric; the prefix of a name is optional."""
        if dict.__contains__(self, name):
            return name
        known = [key.removeprefix("eval_") for key in self if key.startswith("eval_")]
        found = find_name(name.removeprefix("eval_"), known)
        return None if found is None else f"eval_{found}"


class SharedState:
    """The three objects, updated from the run."""

    def __init__(self) -> None:
        self.state = State()
        self.control = TrainerControl()
        self.args: Any = None  # TrainingArguments, made when the run begins
        self._given: dict[str, Any] = {}
        self._best_updated_at = -1

    @classmethod
    def for_runner(cls, runner: BaseRunner) -> SharedState:
        """Return the state of a runner; the first call makes it."""
        if runner not in _shared_states:
            _shared_states[runner] = cls()
        return _shared_states[runner]

    def begin(self, runner: BaseRunner, given: dict[str, Any]) -> None:
        """Make the arguments from the run; those given to one hook hold for all hooks."""
        self._given.update(given)
        self.args = TrainingArguments(**{**derive_arguments(runner), **self._given})
        metric = self.args.metric_for_best_model
        if metric and self.args.greater_is_better is None:
            self.args.greater_is_better = infer_direction(metric) == "greater"
        state = self.state
        state.is_world_process_zero = runner.is_main
        state.is_local_process_zero = runner.is_main
        state.num_train_epochs = runner.max_epochs or 0
        state.max_steps = _total_steps(runner)
        state.compute_steps(self.args, state.max_steps)
        state.global_step = runner.optimizer_steps

    def update_best(self, runner: BaseRunner) -> None:
        """Update the best metric once per evaluation, after all callbacks have seen the results."""
        metric = self.args.metric_for_best_model
        if metric is None or self._best_updated_at == runner.iter:
            return
        self._best_updated_at = runner.iter
        value = runner.metrics.get(metric.removeprefix("eval_"))
        if value is None:
            return
        best = self.state.best_metric
        if best is None or _is_better(value, best, bool(self.args.greater_is_better)):
            self.state.best_metric = value
            self.state.best_global_step = runner.optimizer_steps

    def add_to_history(self, logs: Mapping[str, Any]) -> None:
        """Add logged values to the history: once, although every callback logs them."""
        row = {**logs, "step": self.state.global_step}
        if row not in self.state.log_history[-2:]:
            self.state.log_history.append(row)

    @contextmanager
    def checkpoint_folder(self, runner: BaseRunner) -> Iterator[None]:
        """Provide the folder `checkpoint-<step>` that the Trainer would have written.

        Callbacks upload it in `on_save`. It holds a checkpoint of Hookline's, and is temporary.
        """
        folder = Path(self.args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        if not runner.is_main or runner.checkpoint is None or folder.exists():
            yield
            return
        folder.mkdir(parents=True)
        try:
            write_checkpoint(runner.checkpoint, folder / "checkpoint.pth")
            self.state.save_to_json(str(folder / "trainer_state.json"))
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def derive_arguments(runner: BaseRunner) -> dict[str, Any]:
    """Return the TrainingArguments that describe a run."""
    accumulated = accumulation_steps(runner)
    logger = find_hook(runner, LoggerHook)
    logging_steps = DEFAULT_LOGGING_STEPS
    if logger is not None:
        logging_steps = max(1, logger.interval // accumulated)
    arguments: dict[str, Any] = {
        "output_dir": str(runner.work_dir),
        "report_to": [],
        "use_cpu": runner.device.type == "cpu",
        "seed": runner.seed or 0,
        "metric_for_best_model": "loss",
        "eval_strategy": "no",
        "save_strategy": "no",
        "logging_strategy": "steps",
        "logging_steps": logging_steps,
        "gradient_accumulation_steps": accumulated,
    }
    if runner.max_epochs is not None:
        arguments["num_train_epochs"] = float(runner.max_epochs)
    if runner.loop.iter_limit is not None:
        arguments["max_steps"] = _total_steps(runner)
    evaluation = find_hook(runner, EvalHook)
    if evaluation is not None and runner.val_loader is not None:
        arguments |= _interval_arguments("eval", evaluation, runner)
    saving = find_hook(runner, CheckpointHook)
    if saving is not None and saving.interval > 0:
        arguments |= _interval_arguments("save", saving, runner)
    return arguments


def _interval_arguments(action: str, hook: Any, runner: BaseRunner) -> dict[str, Any]:
    """Return the interval of a hook in optimizer steps, or as one epoch.

    The Trainer has no interval of several epochs.
    """
    accumulated = accumulation_steps(runner)
    if not hook.by_epoch:
        steps = max(1, hook.interval // accumulated)
    elif hook.interval > 1 and runner.epoch_length is not None:
        steps = hook.interval * math.ceil(runner.epoch_length / accumulated)
    else:
        return {f"{action}_strategy": "epoch"}
    return {f"{action}_strategy": "steps", f"{action}_steps": steps}


def _total_steps(runner: BaseRunner) -> int:
    """Return the number of optimizer steps of the whole run, or 0 if it is not known."""
    if runner.max_iters is None:
        return 0
    return count_optimizer_steps(runner, runner.max_iters)


def _is_better(value: float, than: float, greater: bool) -> bool:
    return value > than if greater else value < than
