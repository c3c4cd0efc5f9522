"""What all callbacks of Hugging Face's kind share in one run: TrainingArguments, TrainerState and TrainerControl."""

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
from hookline.compat.foreign.facade import missing
from hookline.engine import BaseRunner
from hookline.engine.metrics import better_when, find_name
from hookline.hooks import CheckpointHook, EvalHook, GradientCumulativeOptimizerHook, LoggerHook

_of_runner: weakref.WeakKeyDictionary[BaseRunner, Shared] = weakref.WeakKeyDictionary()


class State(TrainerState):  # type: ignore[misc]
    """A real TrainerState; an attribute that it lacks is told with the callback that asked for it."""

    stands_for = "state"

    def __getattr__(self, name: str) -> Any:
        raise missing(self, name)


class EvalMetrics(dict[str, Any]):
    """What callbacks are told of an evaluation: `eval_…`, and found by any of a metric's names (`eval_acc`, `eval_accuracy`)."""

    def __missing__(self, name: str) -> Any:
        known = self._known(name)
        if known == name:
            raise KeyError(name)
        return self[known]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(self._known(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self._known(name), default)

    def _known(self, name: str) -> str:
        """The name under which a metric is kept, or, if it is not, the one given."""
        found = find_name(name.removeprefix("eval_"), (key.removeprefix("eval_") for key in self))
        return name if super().__contains__(name) or found is None else f"eval_{found}"


class Shared:
    """The three objects, kept up to date with the run."""

    def __init__(self, runner: BaseRunner) -> None:
        self.state = State()
        self.control = TrainerControl()
        self.args: Any = None  # TrainingArguments, made when the run begins
        self.given: dict[str, Any] = {}
        self._judged_at = -1

    @classmethod
    def of(cls, runner: BaseRunner) -> Shared:
        if runner not in _of_runner:
            _of_runner[runner] = cls(runner)
        return _of_runner[runner]

    def begin(self, runner: BaseRunner, given: dict[str, Any]) -> None:
        """Make the arguments from what the run knows of itself; what a hook was given besides is for all of them."""
        self.given.update(given)
        self.args = TrainingArguments(**{**arguments_of(runner), **self.given})
        if self.args.metric_for_best_model and self.args.greater_is_better is None:
            self.args.greater_is_better = better_when(self.args.metric_for_best_model) == "greater"
        state = self.state
        state.is_world_process_zero = state.is_local_process_zero = runner.is_main
        state.num_train_epochs = runner.max_epochs or 0
        state.max_steps = optimizer_steps_of(runner)
        state.compute_steps(self.args, state.max_steps)
        state.global_step = runner.optimizer_steps

    def judge(self, runner: BaseRunner) -> None:
        """Keep the best metric, as the Trainer does when all callbacks have seen an evaluation."""
        args, state = self.args, self.state
        if args.metric_for_best_model is None or self._judged_at == runner.iter:
            return
        self._judged_at = runner.iter
        value = runner.metrics.get(args.metric_for_best_model.removeprefix("eval_"))
        if value is not None and (state.best_metric is None or _better(value, state.best_metric, bool(args.greater_is_better))):
            state.best_metric, state.best_global_step = value, runner.optimizer_steps

    def note(self, logs: Mapping[str, Any]) -> None:
        """Add to the history what is logged: once, though every callback logs it."""
        row = {**logs, "step": self.state.global_step}
        if row not in self.state.log_history[-2:]:
            self.state.log_history.append(row)

    @contextmanager
    def saved(self, runner: BaseRunner) -> Iterator[None]:
        """While callbacks are told of a save there is the folder that the Trainer would have written, with a checkpoint of ours."""
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


def arguments_of(runner: BaseRunner) -> dict[str, Any]:
    """TrainingArguments that say what the run does."""
    evaluates, saves, logs = (
        next((hook for hook in runner.hooks if isinstance(hook, kind)), None) for kind in (EvalHook, CheckpointHook, LoggerHook)
    )
    together = _together(runner)
    found: dict[str, Any] = {
        "output_dir": str(runner.work_dir),
        "report_to": [],
        "use_cpu": runner.device.type == "cpu",
        "seed": runner.seed or 0,
        "metric_for_best_model": "loss",
        "eval_strategy": "no",
        "save_strategy": "no",
        "logging_strategy": "steps",
        "logging_steps": max(1, logs.interval // together) if isinstance(logs, LoggerHook) else 500,
        "gradient_accumulation_steps": together,
    }
    if runner.max_epochs is not None:
        found["num_train_epochs"] = float(runner.max_epochs)
    if runner.iter_limit is not None:
        found["max_steps"] = optimizer_steps_of(runner)
    if isinstance(evaluates, EvalHook) and runner.val_loader is not None:
        found |= _every("eval", evaluates, runner)
    if isinstance(saves, CheckpointHook) and saves.interval > 0:
        found |= _every("save", saves, runner)
    return found


def _every(what: str, hook: Any, runner: BaseRunner) -> dict[str, Any]:
    """How often a hook does something, in steps of the optimizer; the Trainer knows of no interval of several epochs."""
    length, together = runner.epoch_length, _together(runner)
    if not hook.by_epoch:
        steps = max(1, hook.interval // together)
    elif hook.interval > 1 and length is not None:
        steps = hook.interval * math.ceil(length / together)
    else:
        return {f"{what}_strategy": "epoch"}
    return {f"{what}_strategy": "steps", f"{what}_steps": steps}


def optimizer_steps_of(runner: BaseRunner) -> int:
    """How many optimizer steps the whole run will take, as far as that is known; an epoch, and the run, ends with a step."""
    if runner.max_iters is None:
        return 0
    together, length = _together(runner), runner.epoch_length or runner.max_iters
    whole, rest = divmod(runner.max_iters, length)
    return whole * math.ceil(length / together) + math.ceil(rest / together)


def _together(runner: BaseRunner) -> int:
    """How many iterations make an optimizer step."""
    return next((hook.cumulative_iters for hook in runner.hooks if isinstance(hook, GradientCumulativeOptimizerHook)), 1)


def _better(value: float, than: float, greater: bool) -> bool:
    return value > than if greater else value < than
