"""Checks before the first batch: mistakes that would make a run fail or train nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.optim import Optimizer
from torch.utils.data import Dataset, IterableDataset

from hookline.data.protocols import is_positioned
from hookline.errors import ConfigError, HooklineError

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


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


def check_trainable(runner: BaseRunner) -> None:
    """Raise if there is nothing to train on, no length, or no owner of `optimize`."""
    if runner.train_loader is None:
        raise HooklineError(
            "there is no training data: pass train_loader=…", parameter="train_loader"
        )
    if runner.max_epochs is None and runner.max_iters is None:
        raise HooklineError("either max_epochs or max_iters is required", parameter="max_epochs")
    for name in ("train_loader", "val_loader"):
        check_is_loader(name, getattr(runner, name))
    _check_loss(runner.loss_fn)
    _check_optimizer(runner)


def check_parts(runner: BaseRunner) -> None:
    """Raise if a validation would fail; warn about unused parts. Runs after `before_run`."""
    model = runner.model
    if (
        runner.val_loader is not None
        and runner.evaluation.test_fn is None
        and not hasattr(model, "val_step")
        and not _has_forward(model)
    ):
        raise HooklineError(
            f"{type(model).__name__} has neither val_step nor forward, so it cannot be evaluated "
            "on the val_loader: give it a val_step(batch), or leave the val_loader out"
        )
    hooks = [*runner.sites.hooks["after_val_iter"], *runner.sites.hooks["after_val_epoch"]]
    others_possible = any(hook.adds_metrics for hook in hooks)
    runner.best.check(runner.evaluation.expected_metrics(runner), others_possible)
    if runner.is_main:
        _warn_about_other_optimizers(runner)
        _warn_about_unmeasured(runner)


def check_is_loader(name: str, loader: Any) -> None:
    """Raise if a map-style dataset was passed in place of a loader."""
    for each in loader.values() if isinstance(loader, Mapping) else [loader]:
        if isinstance(each, Dataset) and not isinstance(each, IterableDataset):
            raise HooklineError(
                f"{name} is a Dataset ({type(each).__name__}), which yields single samples: use "
                "make_loader(dataset, batch_size=…) or a DataLoader",
                parameter=name,
            )


def warn_about_resume(runner: BaseRunner) -> None:
    """Warn before training if the data loading makes an exact resume impossible."""
    loader = runner.train_loader
    reason = None
    if is_positioned(loader):
        reason = loader.not_resumable
    elif isinstance(loader, Iterator):
        reason = "it can be read only once"
    if reason is not None and runner.checkpointer.is_open:
        runner.logger.warning(
            "this run cannot be resumed exactly: train_loader (%s): %s",
            type(loader).__name__, reason,
        )  # fmt: skip


def _check_loss(loss_fn: Any) -> None:
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


def _check_optimizer(runner: BaseRunner) -> None:
    optimizer = runner.optimizer
    has_own_step = hasattr(runner.model, "train_step")
    if runner.sites.optimize:
        if optimizer is None:
            raise HooklineError("there is no optimizer: pass optimizer=…", parameter="optimizer")
    elif optimizer is None and not has_own_step:
        raise HooklineError(
            "there is no optimizer: pass optimizer=…, or give the model a train_step(batch) that "
            "steps its own",
            parameter="optimizer",
        )
    elif isinstance(optimizer, Mapping) and not has_own_step:
        raise HooklineError(
            f"the {len(optimizer)} optimizers are never stepped: give the model a "
            "train_step(batch, optimizers) that does, or pass only one",
            parameter="optimizer",
        )
    elif optimizer is not None and not isinstance(optimizer, Mapping):
        raise HooklineError(
            "no hook owns 'optimize', so the weights would never change: register an OptimizerHook",
            parameter="hooks",
        )


def _has_forward(model: nn.Module) -> bool:
    return getattr(model.forward, "__func__", None) is not nn.Module.forward


def _warn_about_other_optimizers(runner: BaseRunner) -> None:
    """Warn about optimizers of another model; a wrapped or sharded one has the same parameters."""
    modules = [part for part in (runner.model, runner.loss_fn) if isinstance(part, nn.Module)]
    known = {id(parameter) for module in modules for parameter in module.parameters()}
    optimizers: Mapping[str, Optimizer] = {}
    if isinstance(runner.optimizer, Mapping):
        optimizers = runner.optimizer
    elif runner.optimizer is not None:
        optimizers = {"": runner.optimizer}
    for name, optimizer in optimizers.items():
        held = [id(each) for group in optimizer.param_groups for each in group["params"]]
        if not known.intersection(held):
            runner.logger.warning(
                "the optimizer%s has no parameter of the model (%s) and will not change it: was it "
                "made for another model?",
                f" {name!r}" if name else "", type(runner.model).__name__,
            )  # fmt: skip


def _warn_about_unmeasured(runner: BaseRunner) -> None:
    if runner.evaluation.metrics and runner.val_loader is None and runner.test_loader is None:
        runner.logger.warning(
            "there is neither a val_loader nor a test_loader, so these metrics are never measured: %s",
            ", ".join(runner.evaluation.metrics),
        )
