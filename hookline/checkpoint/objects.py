"""Objects with state beside the model and the optimizer: a trainable loss, metrics, services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookline.checkpoint.formats import iterate_tensors
from hookline.errors import HooklineError, Suggestion

MAX_LISTED = 3


def stateful_objects(named: Mapping[str, Any], known: Iterable[Any]) -> dict[str, Any]:
    """Return the objects with `state_dict` and `load_state_dict`, each once.

    Args:
        named: All objects by name.
        known: Objects that are saved elsewhere in the checkpoint.
    """
    seen = {id(each) for each in known}
    found = {}
    for name, each in named.items():
        methods = [getattr(each, method, None) for method in ("state_dict", "load_state_dict")]
        if isinstance(each, type) or not all(map(callable, methods)) or id(each) in seen:
            continue
        seen.add(id(each))
        found[name] = each
    return found


def collect_objects(objects: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states of objects by name, without the empty ones."""
    states = {}
    for name, each in objects.items():
        state = each.state_dict()
        if state:
            states[name] = dict(state) if isinstance(each, nn.Module) else state
    return states


def load_objects(objects: Mapping[str, Any], states: Mapping[str, Any]) -> list[str]:
    """Load the states of objects, and return the problems: states that are missing or left over.

    Raises:
        HooklineError: If a state does not fit its object.
    """
    problems = []
    for name, each in objects.items():
        has_state = bool(each.state_dict())
        if name not in states:
            if has_state:
                problems.append(f"no state of {name} ({type(each).__name__})")
        elif isinstance(each, nn.Module) and not has_state:
            kind = type(each).__name__
            problems.append(f"the state of {name} is ignored, because {kind} has none")
        else:
            _load(name, each, states[name])
    problems += [f"the state of {name} is ignored" for name in states if name not in objects]
    return problems


def _load(name: str, target: Any, state: Any) -> None:
    try:
        target.load_state_dict(state)
    except Exception as error:
        kind = type(target).__name__
        message = f"the checkpoint's state of {name} does not fit {kind}: {error}"
        raise HooklineError(message, parameter=name) from error


def check_no_lazy(modules: Iterable[Any]) -> None:
    """Raise HooklineError if a module has parameters without a shape: they cannot be stored."""
    for module in modules:
        if not isinstance(module, nn.Module):
            continue
        lazy = [name for name, each in module.named_parameters() if is_lazy(each)]
        if lazy:
            raise HooklineError(
                f"{type(module).__name__} has lazy parameters ({_listed(lazy)}), which cannot be "
                "stored or restored",
                parameter="model",
                suggestion=Suggestion(advice="run the model on one batch before training"),
            )


def check_all_saved(
    optimizers: Mapping[str, torch.optim.Optimizer],
    checkpoint: Mapping[str, Any],
    owners: Iterable[Any],
) -> None:
    """Raise HooklineError if an optimizer trains parameters that the checkpoint does not hold.

    Args:
        optimizers: The optimizers by name.
        checkpoint: The state of the run, with its live tensors.
        owners: Objects whose parameters are saved: modules, and hooks that write checkpoints.
    """
    rest = {key: value for key, value in checkpoint.items() if key != "optimizer"}
    memory = {_address(tensor) for _, tensor in iterate_tensors(rest)}
    saved = {id(each) for owner in owners for each in _parameters(owner)}
    missing = []
    for name, optimizer in optimizers.items():
        for index, group in enumerate(optimizer.param_groups):
            for each in group["params"]:
                if each.numel() and id(each) not in saved and _address(each) not in memory:
                    where = f"{name} group {index}".strip()
                    missing.append(f"{where}, shape {tuple(each.shape)}")
    if missing:
        raise HooklineError(
            f"the optimizer trains {len(missing)} parameters that no checkpoint holds "
            f"({_listed(missing)}), so a resumed run would lose them",
            parameter="optimizer",
            suggestion=Suggestion(
                advice="make them part of the model or of loss_fn, register their module as a "
                "service, or return them from a hook's state_dict"
            ),
        )


def _parameters(owner: Any) -> Iterator[Any]:
    """Yield the parameters of a module, or of the modules and tensors that an object has."""
    values = [owner] if isinstance(owner, nn.Module) else list(vars(owner).values())
    for value in values:
        if isinstance(value, nn.Module):
            yield from value.parameters()
        elif isinstance(value, Tensor):
            yield value


def _address(tensor: Tensor) -> Any:
    """Return a key that tensors with the same memory share."""
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.layout is not torch.strided or not tensor.numel():
        return id(tensor)
    return tensor.device, tensor.untyped_storage().data_ptr()


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{'; '.join(names[:MAX_LISTED])}{more}"
