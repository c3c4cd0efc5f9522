"""Call hooks from an external loop: one that you wrote, or that of another framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch

from hookline.checkpoint.parts import restore_hooks
from hookline.counters import set_counters
from hookline.data.protocols import is_stateful, set_default_seed
from hookline.engine import BaseRunner, HookOrConfig, Metrics, StopReason
from hookline.engine.run_state import capture
from hookline.engine.runner import Optimizers
from hookline.engine.session import RunSession
from hookline.errors import HooklineError
from hookline.hooks import EvalHook
from hookline.hooks.builder import check_copied, warn_about_unwritten_records
from hookline.optim.step_hooks import follow_steps, warn_about_after_backward
from hookline.trial import apply_trial

Validate = Callable[[], Mapping[str, Any]]

# Parts of a checkpoint that the owner of the loop saves.
PARTS_OF_OWNER = frozenset({"state_dict", "optimizer", "scheduler", "loader", "rng"})


def drive(
    hooks: Iterable[HookOrConfig],
    model: torch.nn.Module,
    optimizer: Optimizers | None = None,
    train_loader: Iterable[Any] | None = None,
    *,
    validate: Validate | None = None,
    epoch_length: int | None = None,
    **parts: Any,
) -> Drive:
    """Return a context in which your loop calls hooks.

    Example:
        ```python
        with drive(hooks, model, optimizer, loader, max_epochs=3) as run:
            for batch in run:
                loss = run.loss(compute_loss(model, batch))
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        ```

    Epochs, saving, stopping and resuming work as in a Runner. A loop that cannot be written as
    `for batch in run` leaves `train_loader` out and calls `begin_epoch`, `begin_batch`, `end_batch`
    and `end_epoch`.

    Args:
        hooks: Hooks or their configs; none may own `optimize`.
        model: The model that the loop trains.
        optimizer: The optimizer that the loop steps, or several by name. An iteration in which
            several step counts as one step.
        train_loader: The batches of `for batch in run`.
        validate: Returns metrics by name; called after each epoch, or when an EvalHook asks.
        epoch_length: Batches of an epoch, if there is no `train_loader`.
        parts: Further arguments of a Runner: `max_epochs`, `work_dir`, `resume`, `loss_fn`, …
    """
    if isinstance(optimizer, Mapping):
        optimizer = {name: _unwrap(each) for name, each in optimizer.items()}
    else:
        optimizer = _unwrap(optimizer)
    parts = {"device": _device_of(model), **parts}
    trial = apply_trial(parts.get("work_dir"), parts.get("resume"), hooks)
    parts |= {"work_dir": trial.work_dir, "resume": trial.resume}
    loader = _without_broken_state(train_loader)
    set_default_seed(loader, parts.get("seed"))
    runner = BaseRunner(model, loader, optimizer=optimizer, hooks=trial.hooks, **parts)
    check_copied(runner)
    if epoch_length is not None:
        runner.epoch_length = epoch_length
        runner.loop.update_length()
    return Drive(runner, validate)


class Drive:
    """A run whose loop is your code. `drive` returns it.

    Args:
        runner: The runner that is passed to hooks.
        validate: Returns metrics by name.
        handle_signals: Whether SIGINT and SIGTERM save and stop the run.
        owner_validates: Whether the owner of the loop validates, with `begin_validation` and
            `end_validation`.
        resume_state: The result of `state_dict` from the checkpoint that the loop resumes from.
    """

    def __init__(
        self,
        runner: BaseRunner,
        validate: Validate | None = None,
        handle_signals: bool = True,
        owner_validates: bool = False,
        resume_state: Mapping[str, Any] | None = None,
    ) -> None:
        _refuse_owners(runner, owner_validates)
        self.runner = runner
        self._resume_state = resume_state
        self._validate = _refuse_to_validate if owner_validates else validate
        self._handle_signals = handle_signals
        self._optimizer_hooks = ExitStack()
        self._follows_optimizer = False
        self._has_stepped = False  # one of several optimizers, in this iteration
        self._evaluation = ExitStack()
        self._is_in_epoch = False  # while the owner validates
        self._session = ExitStack()
        runner.loop.owns_data = runner.train_loader is not None
        if self._validate is not None:
            runner.val_loader = ()  # only the function knows the data
            has_policy = any(isinstance(hook, EvalHook) for hook in runner.hooks)
            if not owner_validates and not has_policy:
                runner.register_hook(EvalHook(metric="auto", save_best=False))

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the run is over; None while it is not."""
        return self.runner.stop_reason

    def __enter__(self) -> Drive:
        runner = self.runner
        with ExitStack() as stack:
            session = RunSession(runner, is_training=True, handle_signals=self._handle_signals)
            stack.enter_context(session)
            self._begin()
            self._session = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        runner = self.runner
        self._optimizer_hooks.close()
        self._evaluation.close()  # A failed validation may have left averaged weights in the model.
        if error is not None:
            self._session.__exit__(kind, error, trace)
            return
        with self._session:
            runner.loop.end()
            if runner.stop_reason is None:
                reason = StopReason("the loop was left")
                if runner.loop.is_finished():
                    reason = runner.loop.natural_end()
                runner.stop_reason = reason
            runner.call_hook("after_train")
            runner.call_hook("after_run")
            warn_about_unwritten_records(runner)

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of the whole run, epoch after epoch."""
        if self.runner.train_loader is None:
            raise HooklineError("there is nothing to loop over: pass drive(…, train_loader=…)")
        self.follow_optimizer()
        for batch in self.runner.loop.iterations():
            self._expect_step()
            yield batch
            self._count_step()

    def close(self) -> None:
        """Run cleanup only, for a loop that ended without notice."""
        self._optimizer_hooks.close()
        self._evaluation.close()
        self._session.close()

    def state_dict(self) -> dict[str, Any]:
        """Return counters and hooks' state, for the checkpoint of the loop's owner."""
        runner = self.runner
        runner.checkpoint = capture(runner, all_ranks=False)
        try:
            runner.call_hook("before_save_checkpoint")
            return {
                key: value for key, value in runner.checkpoint.items() if key not in PARTS_OF_OWNER
            }
        finally:
            runner.checkpoint = None

    def loss(self, loss: Any, **outputs: Any) -> Any:
        """Pass the loss, and `predictions` or `targets`, to hooks; return the loss for backward."""
        runner = self.runner
        runner.outputs = {"loss": loss, **outputs}
        for call in runner.sites.after_forward:
            call(runner)
        runner.loop.phase = "optimize"
        return runner.outputs["loss"]

    def follow_optimizer(self, before: bool = True) -> None:
        """Call `after_backward` before each optimizer step, and `after_optimizer_step` after it.

        With several optimizers, call only the latter, at the end of an iteration with a step.

        Args:
            before: Whether to call `after_backward`. False if the owner of the loop calls it.
        """
        optimizer = self.runner.optimizer
        if self._follows_optimizer:
            return
        if isinstance(optimizer, torch.optim.Optimizer):
            self._follows_optimizer = True
            before_step = self.after_backward if before else None
            self._optimizer_hooks = follow_steps(optimizer, self.after_step, before_step)
        elif isinstance(optimizer, Mapping):
            self._follows_optimizer = True
            warn_about_after_backward(self.runner)
            for each in optimizer.values():
                self._optimizer_hooks.enter_context(follow_steps(each, self._note_step))

    def begin_epoch(self) -> None:
        """Begin an epoch of your loop."""
        self.runner.loop.owns_data = False
        self.follow_optimizer()
        self.runner.loop.begin_epoch()

    def begin_batch(self, batch: Any = None) -> None:
        """Begin an iteration of your loop."""
        self.runner.loop.owns_data = False
        self.runner.loop.begin_iteration(batch)
        self._expect_step()

    def after_backward(self) -> None:
        """Call hooks when gradients are complete and not yet used."""
        for call in self.runner.sites.after_backward:
            call(self.runner)

    def after_step(self) -> None:
        """Call hooks when the optimizer has just stepped."""
        self.runner.optimizer_steps += 1
        self.runner.loop.accumulating = False
        for call in self.runner.sites.after_optimizer_step:
            call(self.runner)

    def end_batch(self, loss: Any = None, last: bool = False) -> bool:
        """End an iteration of your loop; return False if the run should stop.

        Args:
            loss: The loss, if `loss(…)` was not called.
            last: Whether this was the epoch's last iteration.
        """
        runner = self.runner
        if loss is not None:
            runner.outputs = {**runner.outputs, "loss": loss}
        self._count_step()
        runner.loop.end_iteration(is_last=last)
        return runner.stop_reason is None

    def end_train_epoch(self) -> None:
        """End the training part of an epoch, before your own validation."""
        self.runner.loop.end_train_epoch()

    def begin_validation(self) -> None:
        """Begin a validation that the owner of the loop runs."""
        runner = self.runner
        self._is_in_epoch = runner.loop.phase == "data"
        runner.loop.phase = ""
        runner.sites.costs.discard_sample()
        self._evaluation = runner.evaluation.begin(runner)
        runner.call_hook("before_val")
        runner.call_hook("before_val_epoch")

    def end_validation(self, metrics: Mapping[str, Any]) -> None:
        """End the validation that `begin_validation` began, with its metrics."""
        runner = self.runner
        runner.metrics = Metrics({name: float(value) for name, value in metrics.items()})
        runner.call_hook("after_val_epoch")
        self._evaluation.close()
        runner.best.update(runner.metrics, runner.epoch, runner.iter)
        runner.best.warn_about_missing(runner.metrics)
        runner.call_hook("after_val")
        if self._is_in_epoch:
            runner.loop.await_batch()  # Restart the timer: a validation is not data time.

    def settle(self) -> bool:
        """Settle requests now, such as those of a validation; return False to stop."""
        self.runner.loop.settle_if_due()
        return self.runner.stop_reason is None

    def end_epoch(self, train_epoch_ended: bool = False) -> bool:
        """End an epoch of your loop; return False if the run should stop.

        Args:
            train_epoch_ended: Whether `end_train_epoch` was called already.
        """
        if not train_epoch_ended:
            self.runner.loop.end_train_epoch()
        self.runner.loop.end_whole_epoch()
        self.runner.loop.settle_if_due()
        return self.runner.stop_reason is None

    def _begin(self) -> None:
        runner = self.runner
        runner.stop_reason = None
        runner.checkpointer.remember_hyperparameters()
        runner.sites.costs.start(runner)
        runner.best.reset()
        runner.call_hook("before_run")
        if self._validate is not None:
            validate = self._validate
            runner.evaluation.test_fn = lambda model, loader: validate()
        if self._resume_state is None:
            runner.checkpointer.load_or_resume()
        else:
            self._load_state_dict(self._resume_state)
        runner.call_hook("before_train")
        runner.loop.begin()
        if self._resume_state is not None:
            runner.loop.reapply_state()

    def _load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore counters and hooks; the owner restores weights, data and random numbers."""
        runner = self.runner
        meta = state["meta"]
        set_counters(runner, meta)
        runner.metrics.update(meta["metrics"])
        runner.best.load_state_dict(meta["best"])
        runner.events.load_state_dict(state["events"])
        restore_hooks(runner.hooks, state)
        runner.loop.mark_resumed(dict(state))
        runner.checkpointer.pass_to_hooks(dict(state))

    def _expect_step(self) -> None:
        """Treat gradients as accumulating until the optimizer steps."""
        self.runner.loop.accumulating = self._follows_optimizer

    def _note_step(self) -> None:
        self._has_stepped = True

    def _count_step(self) -> None:
        """Count the steps of several optimizers in an iteration as one."""
        if self._has_stepped:
            self._has_stepped = False
            self.after_step()


class _StatelessLoader:
    """A loader without its `state_dict`: only batches and length."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self._loader, "set_epoch"):
            self._loader.set_epoch(epoch)


def _without_broken_state(loader: Any) -> Any:
    """Hide a `state_dict` that raises AttributeError, as in most of Accelerate's loaders."""
    try:
        if is_stateful(loader):
            loader.state_dict()
    except AttributeError:
        return _StatelessLoader(loader)
    return loader


def _refuse_owners(runner: BaseRunner, owner_validates: bool) -> None:
    """Raise if a hook would do the work of the loop: optimize, or decide when to validate."""
    for hook in runner.sites.hooks["optimize"]:
        raise HooklineError(
            f"{hook.name} owns 'optimize', but this loop runs backward and steps the optimizer "
            "itself: remove the hook",
            component=hook.name,
            site="optimize",
        )
    for hook in runner.hooks:
        if owner_validates and isinstance(hook, EvalHook):
            raise HooklineError(
                f"{hook.name} requests validations, but the owner of this loop decides when to "
                "validate: remove the hook",
                component=hook.name,
                site="before_val",
            )


def _refuse_to_validate() -> Mapping[str, Any]:
    raise HooklineError(
        "a hook requested a validation, but the owner of this loop decides when to validate: "
        "remove the hook"
    )


def _unwrap(optimizer: Any) -> Any:
    """Return the optimizer that steps, which Accelerate wraps."""
    return getattr(optimizer, "optimizer", optimizer)


def _device_of(model: torch.nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
