"""What would make a training pointless or fail at its first batch, told before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.utils.data import Dataset, IterableDataset

from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


def check_trainable(runner: BaseRunner) -> None:
    """HooklineError if a run has nothing to train on, no length, or nobody to change the weights."""
    if runner.train_loader is None:
        raise HooklineError("there is nothing to train on: pass train_loader=…")
    if runner.max_epochs is None and runner.max_iters is None:
        raise HooklineError("how long to train? pass max_epochs=… or max_iters=…")
    for name in ("train_loader", "val_loader"):
        check_batches(name, getattr(runner, name))
    _check_loss(runner.loss_fn)
    _check_steps(runner)


def check_parts(runner: BaseRunner) -> None:
    """HooklineError if a validation would fail, and warnings of what is for nothing; for after `before_run`, where hooks bring parts."""
    model = runner.model
    if runner.val_loader is not None and runner.evaluation.test_fn is None and not hasattr(model, "val_step") and not _has_forward(model):
        raise HooklineError(
            f"{type(model).__name__} has neither val_step nor forward, so it cannot be evaluated on the val_loader: "
            f"give it a val_step(batch), or leave the val_loader out"
        )
    if runner.is_main:
        _tell_foreign_optimizers(runner)
        _tell_unmeasured(runner)


def check_batches(name: str, loader: Any) -> None:
    """HooklineError if a data set was given where a loader is wanted; an iterable one may give batches of its own."""
    for each in loader.values() if isinstance(loader, Mapping) else [loader]:
        if isinstance(each, Dataset) and not isinstance(each, IterableDataset):
            raise HooklineError(
                f"{name} is a Dataset ({type(each).__name__}), which gives single samples: "
                f"make_loader(dataset, batch_size=…) or a DataLoader gives batches"
            )


def _check_loss(loss_fn: Any) -> None:
    if isinstance(loss_fn, type):
        raise HooklineError(f"loss_fn: {loss_fn.__name__} is a class; pass an object: {loss_fn.__name__}()")
    if loss_fn is not None and not callable(loss_fn):
        hint = "; names are for configs" if isinstance(loss_fn, str) else ""
        raise HooklineError(
            f"loss_fn must be a function of predictions and targets, such as nn.MSELoss() or nn.CrossEntropyLoss(), got {loss_fn!r}{hint}"
        )


def _has_forward(model: nn.Module) -> bool:
    return getattr(model.forward, "__func__", None) is not nn.Module.forward


def _tell_foreign_optimizers(runner: BaseRunner) -> None:
    """Warn of optimizers made for another model. Wrapped, sharded and compiled models have the parameters that their optimizer has."""
    modules = [part for part in (runner.model, runner.loss_fn) if isinstance(part, nn.Module)]
    known = {id(parameter) for module in modules for parameter in module.parameters()}
    optimizers = runner.optimizer if isinstance(runner.optimizer, Mapping) else {"": runner.optimizer}
    for name, optimizer in optimizers.items():
        if optimizer is not None and not any(id(parameter) in known for group in optimizer.param_groups for parameter in group["params"]):
            runner.logger.warning(
                "the optimizer%s has no parameter of the model (%s) and will not change it: was it made for another one?",
                f" {name!r}" if name else "",
                type(runner.model).__name__,
            )


def _tell_unmeasured(runner: BaseRunner) -> None:
    if runner.metric_objects and runner.val_loader is None and runner.test_loader is None:
        runner.logger.warning(
            "there is neither a val_loader nor a test_loader, so these metrics are never measured: %s", ", ".join(runner.metric_objects)
        )


def _check_steps(runner: BaseRunner) -> None:
    optimizer, own = runner.optimizer, hasattr(runner.model, "train_step")
    if runner.sites.optimize:
        if optimizer is None:
            raise HooklineError("there is no optimizer: pass optimizer=…")
    elif optimizer is None and not own:
        raise HooklineError("there is no optimizer: pass optimizer=…, or give the model a train_step(batch) that steps its own")
    elif isinstance(optimizer, Mapping) and not own:
        raise HooklineError(
            f"nobody steps the {len(optimizer)} optimizers: give the model a train_step(batch, optimizers) that does, or pass only one"
        )
    elif optimizer is not None and not isinstance(optimizer, Mapping):
        raise HooklineError("no hook owns 'optimize', so the weights would never change: register an OptimizerHook")
