"""The hook around a callback or algorithm of Composer: which of its events come at which site."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from composer.core import Algorithm, Callback, Event

from hookline.compat.composer.state import Result, RunState, split_batch
from hookline.compat.foreign import AliasedMetrics, ForeignHook
from hookline.compat.foreign.state import decode
from hookline.engine import BaseRunner, Priority
from hookline.errors import HooklineError

# Events of a whole optimizer step; the other events of a batch come for each iteration.
STEP_EVENTS = (Event.BATCH_START, Event.BEFORE_TRAIN_BATCH)
BEFORE_LOSS = (Event.AFTER_FORWARD, Event.BEFORE_LOSS)
AFTER_LOSS = (Event.AFTER_LOSS, Event.BEFORE_BACKWARD)


class ComposerHook(ForeignHook):
    """Drives a callback or an algorithm with a real State and Logger that all of them share.

    A batch in Composer is an optimizer step, so BATCH_END comes at `after_optimizer_step`, where
    the gradients still exist. An algorithm that changes the model does so when the run begins,
    before other hooks see it. If an algorithm changes the targets between the forward pass and the
    loss, the loss is recomputed.
    """

    framework = "composer"
    distributions = ("mosaicml",)
    expected = "a Callback or an Algorithm of Composer"
    base = Callback
    priority = Priority.HIGHEST

    EVENTS: ClassVar[Mapping[str, tuple[Event, ...]]] = {
        "before_train": (Event.AFTER_LOAD, Event.FIT_START),
        "before_train_epoch": (Event.ITERATION_START, Event.EPOCH_START),
        "before_train_iter": (
            Event.BEFORE_DATALOADER,
            Event.AFTER_DATALOADER,
            *STEP_EVENTS,
            Event.BEFORE_FORWARD,
        ),
        "after_forward": (*BEFORE_LOSS, *AFTER_LOSS),
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
        self._initialized = False
        self._is_algorithm = isinstance(callback, Algorithm)
        self._events = {}
        for site, events in self.EVENTS.items():
            self._events[site] = self._handled(events)
        iteration = self._events["before_train_iter"]
        self._accumulating_events = tuple(event for event in iteration if event not in STEP_EVENTS)
        self._before_loss = self._handled(BEFORE_LOSS)
        self._after_loss = self._handled(AFTER_LOSS)

    @classmethod
    def is_callback(cls, kind: type) -> bool:
        """Return whether a class is a callback or an algorithm of Composer."""
        return issubclass(kind, (Algorithm, Callback))

    def site_method(self, site: str) -> Callable[..., Any] | None:
        # The batches of an epoch are counted from before_train_epoch, with or without events.
        if self._events.get(site) == () and site != "before_train_epoch":
            return None
        return super().site_method(site)

    def before_run(self, runner: BaseRunner) -> None:
        self.state = RunState.for_runner(runner)
        if not self._initialized:
            self._initialized = True
            self._run((Event.INIT, Event.BEFORE_LOAD))
            self.state.check(self)

    def before_train(self, runner: BaseRunner) -> None:
        self.state.begin()
        self._run(self._events["before_train"])
        self.state.check(self)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self.state.select_train_data()
        steps_in_epoch = math.ceil(runner.inner_iter / self.state.accumulated)
        self.state.steps_at_epoch = runner.optimizer_steps - steps_in_epoch
        self._run(self._events["before_train_epoch"])

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.state.batch = runner.batch
        if runner.loop.accumulating:
            self._run(self._accumulating_events)
        else:
            self._run(self._events["before_train_iter"])
        runner.batch = self.state.batch

    def after_forward(self, runner: BaseRunner) -> None:
        state = self.state
        outputs = runner.outputs
        state.batch = runner.batch
        state.outputs = outputs.get("predictions")
        state.loss = outputs["loss"]
        self._run(self._before_loss)
        if state.batch is not runner.batch:
            state.loss = self._recompute_loss(runner)
            runner.batch = state.batch
        self._run(self._after_loss)
        outputs["loss"] = state.loss
        outputs["predictions"] = state.outputs

    def after_backward(self, runner: BaseRunner) -> None:
        self._run(self._events["after_backward"])

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.loop.accumulating:  # after_backward is called once for all accumulated iterations
            self._run(self._events["after_train_iter"])

    def after_optimizer_step(self, runner: BaseRunner) -> None:
        self._run(self._events["after_optimizer_step"])

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._run(self._events["after_train_epoch"])

    def after_epoch(self, runner: BaseRunner) -> None:
        self._run(self._events["after_epoch"])

    def before_val_epoch(self, runner: BaseRunner) -> None:
        self.state.select_eval_data()
        self._run(self._events["before_val_epoch"])

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.state.batch = runner.batch
        self._run(self._events["before_val_iter"])

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.state.outputs = runner.outputs.get("predictions")
        self._run(self._events["after_val_iter"])

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self.state.select_eval_data()
        results = AliasedMetrics()
        for name, value in runner.metrics.items():
            results[name] = Result(value)
        self.state.eval_metrics = {"eval": results}
        self._run(self._events["after_val_epoch"])
        self.state.select_train_data()

    def after_train(self, runner: BaseRunner) -> None:
        if runner.inner_iter == 0:
            self.state.steps_at_epoch = runner.optimizer_steps
        self._run(self._events["after_train"])

    def cleanup(self, runner: BaseRunner) -> None:
        if not self._is_algorithm and hasattr(self, "state"):
            self.callback.close(self.state, self.state.logger)
            self.callback.post_close()

    def state_dict(self) -> dict[str, Any]:
        return self.plain_state(self.callback.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.callback.load_state_dict(decode(dict(state)))

    def _handled(self, events: Iterable[Event]) -> tuple[Event, ...]:
        """Return the events that the callback handles; an algorithm may match any of them."""
        if self._is_algorithm or type(self.callback).run_event is not Callback.run_event:
            return tuple(events)
        return tuple(event for event in events if self.has(event.value))

    def _run(self, events: Iterable[Event]) -> None:
        state = self.state
        callback = self.callback
        state._hook = self
        if not self._is_algorithm:
            for event in events:
                callback.run_event(event, state, state.logger)
            return
        for event in events:
            if callback.match(event, state):
                callback.apply(event, state, state.logger)

    def _recompute_loss(self, runner: BaseRunner) -> Any:
        """Return the loss for the targets that an algorithm has put into the batch."""
        if runner.loss_fn is None:
            raise HooklineError(
                "changes the targets before the loss is computed, but the model computes its loss "
                "itself; pass loss_fn",
                component=self.name,
            )
        _, targets = split_batch(self.state.batch)
        return runner.loss_fn(self.state.outputs, targets)
