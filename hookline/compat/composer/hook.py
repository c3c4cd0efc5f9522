"""The hook around a callback or an algorithm of Composer: which of its events come at which site."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from composer.core import Algorithm, Callback, Event

from hookline.compat.composer.state import Result, Results, RunState, targets_and_inputs
from hookline.compat.foreign import ForeignHook, plain_part
from hookline.compat.foreign.state import decode
from hookline.engine import BaseRunner, Priority
from hookline.errors import HooklineError

BEGIN = (Event.BATCH_START, Event.BEFORE_TRAIN_BATCH)  # once for all iterations that make an optimizer step


class ComposerHook(ForeignHook):
    """Drives a callback or an algorithm with a real State and Logger that all of them share.

    A batch of Composer's is what makes an optimizer step, so BATCH_END comes at `after_optimizer_step`, where gradients are still
    there. An algorithm that changes the model does so when the run begins, before other hooks see it. One that changes targets
    between forward and loss has the loss computed anew.
    """

    framework = "composer"
    distributions = ("mosaicml",)
    base = Callback
    priority = Priority.HIGHEST

    EVENTS: ClassVar[Mapping[str, tuple[Event, ...]]] = {
        "before_train": (Event.AFTER_LOAD, Event.FIT_START),
        "before_train_epoch": (Event.ITERATION_START, Event.EPOCH_START),
        "before_train_iter": (
            *(Event.BEFORE_DATALOADER, Event.AFTER_DATALOADER, Event.BATCH_START),
            *(Event.BEFORE_TRAIN_BATCH, Event.BEFORE_FORWARD),
        ),
        "after_forward": (Event.AFTER_FORWARD, Event.BEFORE_LOSS, Event.AFTER_LOSS, Event.BEFORE_BACKWARD),
        "after_backward": (Event.AFTER_BACKWARD, Event.AFTER_TRAIN_BATCH),
        "after_train_iter": (Event.AFTER_BACKWARD,),
        "after_optimizer_step": (Event.BATCH_END, Event.BATCH_CHECKPOINT),
        "after_train_epoch": (Event.EPOCH_END, Event.ITERATION_END),
        "after_epoch": (Event.EPOCH_CHECKPOINT, Event.ITERATION_CHECKPOINT),
        "before_val_epoch": (Event.EVAL_BEFORE_ALL, Event.EVAL_START),
        "before_val_iter": (Event.EVAL_BATCH_START, Event.EVAL_BEFORE_FORWARD),
        "after_val_iter": (Event.EVAL_AFTER_FORWARD, Event.EVAL_BATCH_END),
        "after_val_epoch": (Event.EVAL_END, Event.EVAL_AFTER_ALL),
        "after_train": (Event.FIT_END,),
    }

    def __init__(self, callback: Any) -> None:
        super().__init__(callback)
        self._initialised = False
        self._refused: set[str] = set()
        self._is_algorithm = isinstance(callback, Algorithm)
        takes_all = self._is_algorithm or type(callback).run_event is not Callback.run_event
        self._events = {
            site: tuple(event for event in events if takes_all or self.has(event.value)) for site, events in self.EVENTS.items()
        }
        self._inside = tuple(event for event in self._events["before_train_iter"] if event not in BEGIN)
        here = self._events["after_forward"]
        self._before_loss = tuple(event for event in here if event in (Event.AFTER_FORWARD, Event.BEFORE_LOSS))
        self._after_loss = tuple(event for event in here if event in (Event.AFTER_LOSS, Event.BEFORE_BACKWARD))

    def site_method(self, site: str) -> Callable[..., Any] | None:
        idle = self._events.get(site) == () and site != "before_train_epoch"  # where batches of the epoch begin to be counted
        return None if idle else super().site_method(site)

    def before_run(self, runner: BaseRunner) -> None:
        self.state = RunState.of(runner)
        if not self._initialised:
            self._initialised = True
            self._run((Event.INIT, Event.BEFORE_LOAD))
            self.state.check(self)

    def before_train(self, runner: BaseRunner) -> None:
        self.state.begin()
        self._run(self._events["before_train"])
        self.state.check(self)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self.state.train_on()
        self.state.steps_at_epoch = runner.optimizer_steps - -(-runner.inner_iter // self.state.together)
        self._run(self._events["before_train_epoch"])

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.state.batch = runner.batch
        self._run(self._inside if runner.accumulating else self._events["before_train_iter"])
        runner.batch = self.state.batch

    def after_forward(self, runner: BaseRunner) -> None:
        state, outputs = self.state, runner.outputs
        state.batch, state.outputs, state.loss = runner.batch, outputs.get("predictions"), outputs["loss"]
        self._run(self._before_loss)
        if state.batch is not runner.batch:
            state.loss = self._loss_anew(runner)
            runner.batch = state.batch
        self._run(self._after_loss)
        outputs["loss"], outputs["predictions"] = state.loss, state.outputs

    def after_backward(self, runner: BaseRunner) -> None:
        self._run(self._events["after_backward"])

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.accumulating:  # `after_backward` comes once for all of them
            self._run(self._events["after_train_iter"])

    def after_optimizer_step(self, runner: BaseRunner) -> None:
        self._run(self._events["after_optimizer_step"])

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._run(self._events["after_train_epoch"])

    def after_epoch(self, runner: BaseRunner) -> None:
        self._run(self._events["after_epoch"])

    def before_val_epoch(self, runner: BaseRunner) -> None:
        self.state.evaluate_on()
        self._run(self._events["before_val_epoch"])

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.state.batch = runner.batch
        self._run(self._events["before_val_iter"])

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.state.outputs = runner.outputs.get("predictions")
        self._run(self._events["after_val_iter"])

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self.state.evaluate_on()
        self.state.eval_metrics = {"eval": Results({name: Result(value) for name, value in runner.metrics.items()})}
        self._run(self._events["after_val_epoch"])
        self.state.train_on()

    def after_train(self, runner: BaseRunner) -> None:
        if runner.inner_iter == 0:
            self.state.steps_at_epoch = runner.optimizer_steps
        self._run(self._events["after_train"])

    def cleanup(self, runner: BaseRunner) -> None:
        if not self._is_algorithm and hasattr(self, "state"):
            self.callback.close(self.state, self.state.logger)
            self.callback.post_close()

    def state_dict(self) -> dict[str, Any]:
        return plain_part(self.callback.state_dict(), self._refuse)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.callback.load_state_dict(decode(dict(state)))

    def _run(self, events: Any) -> None:
        state, callback = self.state, self.callback
        state._hook = self
        if not self._is_algorithm:
            for event in events:
                callback.run_event(event, state, state.logger)
            return
        for event in events:
            if callback.match(event, state):
                callback.apply(event, state, state.logger)

    def _loss_anew(self, runner: BaseRunner) -> Any:
        """The loss for the targets that an algorithm has put into the batch."""
        if runner.loss_fn is None:
            raise HooklineError(f"{self.name} changes the targets before the loss, and the model computes its loss itself: pass loss_fn=…")
        return runner.loss_fn(self.state.outputs, targets_and_inputs(self.state.batch)[0])

    def _refuse(self, key: str) -> None:
        if key not in self._refused:
            self._refused.add(key)
            self.warn("%r of its state is neither a tensor nor plain data and is not in the checkpoint", key)
