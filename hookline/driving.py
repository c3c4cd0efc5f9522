"""Hooks in a loop that is not ours: one written by hand, or another framework's."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch

from hookline.engine import BaseRunner, Metrics
from hookline.engine.capture import COUNTERS, capture, restore_hooks
from hookline.engine.changes import configured
from hookline.engine.loops import training_batches
from hookline.engine.registration import HookOrConfig
from hookline.engine.run import Run
from hookline.errors import HooklineError
from hookline.hooks import EvalHook

Validate = Callable[[], Mapping[str, Any]]

OWNERS = ("state_dict", "optimizer", "scheduler", "loader", "rng")  # parts of a checkpoint that the owner of the loop keeps


def drive(
    hooks: Iterable[HookOrConfig],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    train_loader: Iterable[Any] | None = None,
    *,
    validate: Validate | None = None,
    epoch_length: int | None = None,
    **parts: Any,
) -> Drive:
    """A context in which a loop calls hooks: `with drive(hooks, model, optimizer, loader, max_epochs=3) as run: for batch in run: …`.

    In the loop `run.loss(loss)` tells the loss before it goes backward. Epochs, saving, stopping and resuming are as in a Runner.
    `validate` returns metrics by name; it is called after each epoch, in evaluation mode, or when an EvalHook says so. `parts` are
    further arguments of a Runner: `max_epochs`, `work_dir`, `resume`, `loss_fn`, …. A loop that cannot be turned into `for batch
    in run`, such as Ignite's, leaves `train_loader` out, gives the `epoch_length` and calls `begin_epoch`, `begin_batch`,
    `end_batch` and `end_epoch`.
    """
    optimizer = getattr(optimizer, "optimizer", optimizer)  # Accelerate's is wrapped around the one that steps
    train_loader = _honest(train_loader)
    runner = BaseRunner(model, train_loader, optimizer=optimizer, hooks=hooks, **{"device": _device_of(model), **parts})
    if runner.sites.optimize:
        owner = runner.sites.plan["optimize"][0].name
        raise HooklineError(f"{owner} owns 'optimize', and in drive(…) the loop itself goes backward and steps: leave it out")
    if epoch_length is not None:
        runner.epoch_length = epoch_length
    return Drive(runner, validate)


class Drive:
    """A run whose iterations are someone else's code."""

    def __init__(
        self,
        runner: BaseRunner,
        validate: Validate | None = None,
        signals: bool = True,
        validated: bool = False,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        """`validated`: whoever owns the loop also validates, and tells with `begin_validation` and `end_validation`.

        `kept` is what `keep` gave for the checkpoint of the loop's owner, if the loop was resumed from it.
        """
        self.runner = runner
        self._kept = kept
        self._validate = _refuse if validated else validate
        self._signals = signals
        self._watched = ExitStack()
        self._evaluating = ExitStack()
        self._steps_seen = False
        if self._validate is not None:
            runner.val_loader = ()  # there is something to validate on, and only the function knows what
            if not validated and not any(isinstance(hook, EvalHook) for hook in runner.hooks):
                runner.register_hook(EvalHook(metric="auto", save_best=False))

    @property
    def stop_reason(self) -> str | None:
        """Why the run is over; None while it is not."""
        return self.runner.stop_reason

    def __enter__(self) -> Drive:
        runner = self.runner
        with ExitStack() as stack:
            stack.enter_context(Run(runner, graceful=True) if self._signals else _WithoutSignals(runner))
            runner.stop_reason = None
            runner.configured = runner.configured or configured(runner.optimizer)
            runner.costs.start(runner)
            for call in runner.sites.before_run:
                call(runner)
            if self._validate is not None:
                function = self._validate
                runner.evaluation.test_fn = lambda model, loader: function()
            if self._kept is None:
                runner._load()
            else:
                self._take(self._kept)
            for call in runner.sites.before_train:
                call(runner)
            if self._kept is not None:
                restore_hooks(runner, self._kept)  # as they were, whatever the sites before here did
                runner._resumed_from = self._kept = None
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        runner = self.runner
        self._watched.close()
        self._evaluating.close()  # a validation that failed: what hooks do next is with the model's own weights
        if error is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            if runner.seam.pending:
                runner.seam.settle(runner)
            runner.stop_reason = runner.stop_reason or (runner._natural_end() if runner.is_finished() else "the loop was left")
            for call in runner.sites.after_train:
                call(runner)
            for call in runner.sites.after_run:
                call(runner)

    def abandon(self) -> None:
        """The loop ended long ago and no one told: hooks tidy up, and that is all."""
        self._watched.close()
        self._evaluating.close()
        self._stack.close()

    def __iter__(self) -> Iterator[Any]:
        """The batches of the whole run, epoch after epoch; between two of them is all that a Runner does there."""
        if self.runner.train_loader is None:
            raise HooklineError("there is nothing to loop over: pass drive(…, train_loader=…)")
        self.watch_optimizer()
        for batch in training_batches(self.runner):
            self._begin(batch)
            yield self.runner.batch
            self._end()

    def keep(self) -> dict[str, Any]:
        """What the owner of the loop is to put into its checkpoint: the counters and all that hooks keep."""
        runner = self.runner
        runner.checkpoint = capture(runner)
        try:
            for call in runner.sites.before_save_checkpoint:
                call(runner)
            return {key: value for key, value in runner.checkpoint.items() if key not in OWNERS}
        finally:
            runner.checkpoint = None

    def loss(self, loss: Any, **outputs: Any) -> Any:
        """Tell the loss, and what else hooks may want (`predictions`, `targets`); returns the loss to go backward from."""
        runner = self.runner
        runner.outputs = {"loss": loss, **outputs}
        for call in runner.sites.after_forward:
            call(runner)
        return runner.outputs["loss"]

    def watch_optimizer(self, before: bool = True) -> None:
        """Have the optimizer tell when it steps: `after_backward` comes before its step, `after_optimizer_step` after it."""
        optimizer = self.runner.optimizer
        if isinstance(optimizer, torch.optim.Optimizer) and not self._steps_seen:
            self._steps_seen = True
            if before:
                self._watched.callback(optimizer.register_step_pre_hook(lambda *_: self.after_backward()).remove)
            self._watched.callback(optimizer.register_step_post_hook(lambda *_: self.after_step()).remove)

    # For a loop that calls us. What the engine's own loop does between two batches is done by `end_batch` and `end_epoch`.

    def begin_epoch(self) -> None:
        runner = self.runner
        self.watch_optimizer()
        inside = runner.inner_iter > 0
        if not inside:
            runner.finish_resume()
        for call in (*runner.sites.before_epoch, *runner.sites.before_train_epoch):
            call(runner)
        if inside:
            runner.finish_resume()

    def begin_batch(self, batch: Any = None) -> None:
        self.runner.batch_idx = self.runner.inner_iter
        self._begin(batch)

    def after_backward(self) -> None:
        """Gradients are complete and not used yet."""
        for call in self.runner.sites.after_backward:
            call(self.runner)

    def after_step(self) -> None:
        """The optimizer has just stepped."""
        self.runner.optimizer_steps += 1
        self.runner.accumulating = False
        for call in self.runner.sites.after_optimizer_step:
            call(self.runner)

    def end_batch(self, loss: Any = None, last: bool = False) -> bool:
        """An iteration is over; `last` is the epoch's. False if the run is to stop."""
        runner = self.runner
        if loss is not None:
            runner.outputs = {**runner.outputs, "loss": loss}
        self._end()
        runner.iter += 1
        runner.inner_iter += 1
        if runner.seam.pending and not (last or runner.inner_iter == runner.epoch_length):
            runner.seam.settle(runner)  # at the end of an epoch its seam is also this iteration's
        return runner.stop_reason is None

    def end_training_part(self) -> None:
        """The epoch's last batch is done, its validation comes next."""
        for call in self.runner.sites.after_train_epoch:
            call(self.runner)
        self.runner.seam.epoch_ends()

    def begin_validation(self) -> None:
        runner = self.runner
        self._evaluating = runner.evaluation._undo = ExitStack()
        self._evaluating.enter_context(runner.events.evaluating())
        for call in (*runner.sites.before_val, *runner.sites.before_val_epoch):
            call(runner)

    def end_validation(self, metrics: Mapping[str, Any]) -> None:
        runner = self.runner
        runner.metrics = Metrics({name: float(value) for name, value in metrics.items()})
        for call in runner.sites.after_val_epoch:
            call(runner)
        self._evaluating.close()
        for call in runner.sites.after_val:
            call(runner)

    def end_epoch(self, training_part: bool = True) -> bool:
        """An epoch is over. False if the run is to stop."""
        runner = self.runner
        if training_part:
            self.end_training_part()
        runner.seam.validate(runner)
        for call in runner.sites.after_epoch:
            call(runner)
        runner.epoch += 1
        runner.inner_iter = 0
        if runner.seam.pending:
            runner.seam.settle(runner)
        return runner.stop_reason is None

    def _take(self, kept: Mapping[str, Any]) -> None:
        """Go on with what `keep` gave; weights, data and random numbers are the business of whoever owns the loop."""
        runner, meta = self.runner, kept["meta"]
        for name in COUNTERS:
            setattr(runner, name, meta[name])
        runner.metrics.update(meta["metrics"])
        runner.best.update(meta["best"])
        runner.events.load_state_dict(kept["events"])
        restore_hooks(runner, kept)
        runner._resumed_from = dict(kept)
        runner._call_after_load(dict(kept))

    def _begin(self, batch: Any) -> None:
        runner = self.runner
        runner.batch = batch
        for call in runner.sites.before_train_iter:
            call(runner)
        runner.accumulating = runner.optimizer is not None  # until a step says otherwise

    def _end(self) -> None:
        runner = self.runner
        for call in runner.sites.after_train_iter:
            call(runner)


class _WithoutSignals(Run):
    """The failure contract alone: signals are the business of whoever owns the loop."""

    def __enter__(self) -> Run:
        super().__enter__()
        for signum, handler in self._old_handlers.items():
            signal.signal(signum, handler)
        self._old_handlers.clear()
        return self


class _Batches:
    """A loader's batches and length, and no more."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self._loader, "set_epoch"):
            self._loader.set_epoch(epoch)


def _honest(loader: Any) -> Any:
    """The loader; without its `state_dict` where that is there and cannot answer, as in most of Accelerate's."""
    try:
        if hasattr(loader, "state_dict") and not hasattr(loader, "batches_done"):
            loader.state_dict()
    except AttributeError:
        return _Batches(loader)
    return loader


def _refuse() -> Mapping[str, Any]:
    raise HooklineError("a hook asked for a validation, but here the owner of the loop decides when to validate: leave EvalHook out")


def _device_of(model: torch.nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
