"""Checks of the objects that a user passes to a runner, before the first batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.utils.data import Dataset, IterableDataset

from hookline.errors import ConfigError, HooklineError


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


def check_is_loader(name: str, loader: Any) -> None:
    """Raise if a map-style dataset was passed in place of a loader."""
    for each in loader.values() if isinstance(loader, Mapping) else [loader]:
        if isinstance(each, Dataset) and not isinstance(each, IterableDataset):
            raise HooklineError(
                f"{name} is a Dataset ({type(each).__name__}), which yields single samples: use "
                "make_loader(dataset, batch_size=…) or a DataLoader",
                parameter=name,
            )


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
    if has_owner:
        if optimizer is None:
            raise HooklineError("there is no optimizer: pass optimizer=…", parameter="optimizer")
    elif optimizer is None and not has_train_step:
        raise HooklineError(
            "there is no optimizer: pass optimizer=…, or give the model a train_step(batch) that "
            "steps its own",
            parameter="optimizer",
        )
    elif isinstance(optimizer, Mapping) and not has_train_step:
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


def check_can_be_evaluated(model: nn.Module) -> None:
    """Raise if a model has no method to evaluate a batch with."""
    has_forward = getattr(model.forward, "__func__", None) is not nn.Module.forward
    if not hasattr(model, "val_step") and not has_forward:
        raise HooklineError(
            f"{type(model).__name__} has neither val_step nor forward, so it cannot be evaluated "
            "on the val_loader: give it a val_step(batch), or leave the val_loader out"
        )


def unrelated_optimizers(optimizer: Any, modules: Iterable[Any]) -> list[str]:
    """Return the names of optimizers without a parameter of the modules; "" is a single one.

    A wrapped or sharded model has the same parameters as the original one.
    """
    known = {
        id(parameter)
        for module in modules
        if isinstance(module, nn.Module)
        for parameter in module.parameters()
    }
    optimizers: Mapping[str, Optimizer] = {}
    if isinstance(optimizer, Mapping):
        optimizers = optimizer
    elif optimizer is not None:
        optimizers = {"": optimizer}
    unrelated = []
    for name, each in optimizers.items():
        held = [id(parameter) for group in each.param_groups for parameter in group["params"]]
        if not known.intersection(held):
            unrelated.append(name)
    return unrelated
