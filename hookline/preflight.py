"""Checks before the first batch, for mistakes that make a run fail or train nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import GeneratorType
from typing import Any, Protocol

from torch import nn
from torch.optim import Optimizer
from torch.utils.data import Dataset, IterableDataset

from hookline.errors import ConfigError, HooklineError, Suggestion
from hookline.module_names import named_parameters

MAX_LISTED = 5  # names in a warning
# Iterators that cannot begin again. An object of another class may begin again on its own.
READ_ONCE = (GeneratorType, map, zip, filter, enumerate)


class Run(Protocol):
    """The parts of a runner that are checked."""

    model: nn.Module
    train_loader: Any
    val_loader: Any
    test_loader: Any
    optimizer: Any
    loss_fn: Any
    max_epochs: int | None
    max_iters: int | None
    is_main: bool
    logger: logging.Logger
    sites: Any
    evaluation: Any
    best: Any
    checkpointer: Any
    loop: Any


def check_trainable(run: Run) -> None:
    """Raise if data, length, loss function or optimizer are missing or wrong."""
    check_data(run.train_loader, run.val_loader, run.max_epochs, run.max_iters)
    check_loss(run.loss_fn)
    has_owner = bool(run.sites.optimize)
    has_train_step = hasattr(run.model, "train_step")
    check_optimizer(run.optimizer, has_owner=has_owner, has_train_step=has_train_step)


def check_parts(run: Run) -> None:
    """Raise if a validation would fail; warn about unused parts. Runs after `before_run`."""
    if run.val_loader is not None and run.evaluation.test_fn is None:
        check_evaluable(run.model)
    hooks = [*run.sites.hooks["after_val_iter"], *run.sites.hooks["after_val_epoch"]]
    # A hook that reports reads the metrics and adds none.
    others_possible = any(hook.adds_metrics and not hook.reports for hook in hooks)
    run.best.check(run.evaluation.expected_metrics(run), others_possible)
    if run.is_main:
        warn_about_optimizers(run.optimizer, run.model, run.loss_fn, run.logger)
        loaders = (run.val_loader, run.test_loader)
        warn_about_unmeasured(run.evaluation.metrics, loaders, run.logger)


def warn_about_resume(run: Run) -> None:
    """Warn before training if a resume would be slow or not exact."""
    loader = run.train_loader
    reason = run.loop.data.of(loader).announcement
    if reason is not None and run.checkpointer.is_open:
        run.logger.warning(
            "train_loader (%s): %s",
            type(loader).__name__, reason,
        )  # fmt: skip
    if "optimizer" in run.checkpointer.excluded and run.is_main:
        run.logger.warning(
            "this run cannot be resumed exactly, because its checkpoints have no optimizer state: "
            "set save_optimizer: true"
        )


def check_length(max_epochs: int | None, max_iters: int | None) -> None:
    """Raise if the length of a run is given twice or is not a positive number."""
    if max_epochs is not None and max_iters is not None:
        raise ConfigError(
            f"pass max_epochs or max_iters, not both (got {max_epochs} and {max_iters})",
            parameter="max_iters",
        )
    for name, value in (("max_epochs", max_epochs), ("max_iters", max_iters)):
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and (not is_whole or value < 1):
            message = f"{name} must be a whole number of at least 1"
            raise ConfigError(message, parameter=name, value=value)


def check_data(train_loader: Any, val_loader: Any, max_epochs: Any, max_iters: Any) -> None:
    """Raise if there is no training data, or the length of the run is not given."""
    if train_loader is None:
        message = "there is no training data: pass train_loader=…"
        raise HooklineError(message, parameter="train_loader")
    if max_epochs is None and max_iters is None:
        raise HooklineError("either max_epochs or max_iters is required", parameter="max_epochs")
    check_is_loader("train_loader", train_loader)
    check_repeatable(train_loader, max_epochs)
    check_is_loader("val_loader", val_loader)
    check_not_empty(val_loader)


def check_is_loader(name: str, loader: Any) -> None:
    """Raise if a map-style dataset was passed in place of a loader."""
    for each in loader.values() if isinstance(loader, Mapping) else [loader]:
        if isinstance(each, Dataset) and not isinstance(each, IterableDataset):
            raise HooklineError(
                f"{name} is a Dataset ({type(each).__name__}), which yields single samples: use "
                "make_loader(dataset, batch_size=…) or a DataLoader",
                parameter=name,
            )


def check_not_empty(val_loader: Any) -> None:
    """Raise if a validation loader is known to have no batches."""
    for loader in val_loader.values() if isinstance(val_loader, Mapping) else [val_loader]:
        try:
            is_empty = loader is not None and len(loader) == 0
        except TypeError:  # Its length is not known.
            continue
        if is_empty:
            advice = Suggestion(advice="check the size of its dataset, and drop_last")
            message = f"val_loader ({type(loader).__name__}) has no batches"
            raise HooklineError(message, parameter="val_loader", suggestion=advice)


def check_repeatable(loader: Any, max_epochs: int | None) -> None:
    """Raise if a run of several epochs has batches that can be read only once."""
    if isinstance(loader, READ_ONCE) and max_epochs is not None and max_epochs > 1:
        raise HooklineError(
            f"train_loader is a {type(loader).__name__}, which can be read only once, and the run "
            f"has max_epochs={max_epochs}: pass max_iters, or an object whose __iter__ makes the "
            "batches of an epoch",
            parameter="train_loader",
        )


def empty_loader_error(loader: Any, epoch: int) -> HooklineError:
    """Return the error for a loader without a batch in an epoch."""
    kind = type(loader).__name__
    return HooklineError(f"train_loader ({kind}) gave no batches in epoch {epoch + 1}: it is empty")


def check_loss(loss_fn: Any) -> None:
    """Raise if the loss function is a class, a name, or cannot be called."""
    if isinstance(loss_fn, type):
        name = loss_fn.__name__
        message = f"loss_fn: {name} is a class; pass an object: {name}()"
        raise HooklineError(message, parameter="loss_fn")
    if loss_fn is not None and not callable(loss_fn):
        hint = "; names are for configs" if isinstance(loss_fn, str) else ""
        raise HooklineError(
            "loss_fn must be a function of predictions and targets, such as nn.MSELoss(), got "
            f"{loss_fn!r}{hint}",
            parameter="loss_fn",
        )


def check_optimizer(optimizer: Any, *, has_owner: bool, has_train_step: bool) -> None:
    """Raise if nothing would change the weights.

    Args:
        optimizer: The optimizer, or several by name.
        has_owner: Whether a hook owns the site `optimize`.
        has_train_step: Whether the model has a `train_step`, which may step the optimizer.
    """
    if isinstance(optimizer, Mapping) and not has_train_step and not has_owner:
        raise HooklineError(
            f"no hook steps a dict of optimizers ({', '.join(optimizer)}): give the model a "
            "train_step(batch, optimizers) that does, or pass only one, without a dict",
            parameter="optimizer",
        )
    if has_owner:
        if optimizer is None:
            raise HooklineError("there is no optimizer: pass optimizer=…", parameter="optimizer")
    elif optimizer is None and not has_train_step:
        raise HooklineError(
            "there is no optimizer: pass optimizer=…, or give the model a train_step(batch) that "
            "steps its own",
            parameter="optimizer",
        )
    elif optimizer is not None and not isinstance(optimizer, Mapping):
        raise HooklineError(
            "no hook owns 'optimize', so the weights would never change: register an "
            "OptimizerHook, or a ManualOptimizationHook if the model's train_step steps the "
            "optimizer",
            parameter="hooks",
        )


def check_evaluable(model: nn.Module) -> None:
    """Raise if a model has no method to evaluate a batch with."""
    has_forward = getattr(model.forward, "__func__", None) is not nn.Module.forward
    if not hasattr(model, "val_step") and not has_forward:
        raise HooklineError(
            f"{type(model).__name__} has neither val_step nor forward, so it cannot be evaluated "
            "on the val_loader: give it a val_step(batch), or pass no val_loader"
        )


def warn_about_optimizers(
    optimizer: Any, model: nn.Module, loss_fn: Any, logger: logging.Logger
) -> None:
    """Warn about optimizers without a parameter of the model, and parameters without one."""
    modules = [part for part in (model, loss_fn) if isinstance(part, nn.Module)]
    known = {id(parameter) for module in modules for parameter in module.parameters()}
    optimizers: Mapping[str, Optimizer] = {}
    if isinstance(optimizer, Mapping):
        optimizers = optimizer
    elif optimizer is not None:
        optimizers = {"": optimizer}
    optimized: set[int] = set()
    for name, each in optimizers.items():
        held = [id(parameter) for group in each.param_groups for parameter in group["params"]]
        optimized.update(held)
        if not known.intersection(held):
            logger.warning(
                "the optimizer%s has no parameter of the model (%s) and will not change it: was it "
                "made for another model?",
                f" {name!r}" if name else "", type(model).__name__,
            )  # fmt: skip
    if len(optimizers) > 1:  # A single one often has only a part of the model.
        _warn_about_left_out(model, optimized, logger)
    _warn_about_unknown(model, optimizers.values(), logger)


def _warn_about_unknown(
    model: nn.Module, optimizers: Iterable[Optimizer], logger: logging.Logger
) -> None:
    """Warn about optimizers that the model steps itself, and that no checkpoint would have."""
    given = {id(each) for each in optimizers}
    for name, value in vars(model).items():
        if isinstance(value, Optimizer) and id(value) not in given:
            logger.warning(
                "checkpoints will not have the state of the model's optimizer %r, so a resumed run "
                "would differ: pass it as optimizer=…, with ManualOptimizationHook() in hooks",
                name,
            )


def _warn_about_left_out(model: nn.Module, optimized: set[int], logger: logging.Logger) -> None:
    names = [
        name
        for name, parameter in named_parameters(model)
        if parameter.requires_grad and id(parameter) not in optimized
    ]
    if names:
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        logger.warning(
            "no optimizer has these trainable parameters, which keep their values: %s%s",
            ", ".join(names[:MAX_LISTED]), more,
        )  # fmt: skip


def warn_about_unmeasured(metrics: Iterable[str], loaders: Iterable[Any], logger: Any) -> None:
    """Warn if there are metrics but no data to measure them on."""
    names = ", ".join(metrics)
    if names and all(loader is None for loader in loaders):
        logger.warning(
            "these metrics are never measured, because there is neither a val_loader nor a "
            "test_loader: %s",
            names,
        )
