"""The rules for the arguments of a Runner, checked before anything is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hookline.engine.manager import Order
from hookline.errors import ConfigError, Problem, Suggestion
from hookline.signature import fits

SCHEDULER_METHODS = ("step", "state_dict")
OPTIMIZER_PARTS = ("step", "zero_grad", "param_groups")


class Rule(NamedTuple):
    """The requirement for an argument.

    Args:
        expected: The description in an error message.
        accepts: Returns whether a value is valid.
        advice: Advice for a value that is not, if the mistake is a known one.
    """

    expected: str
    accepts: Callable[[Any], bool]
    advice: Callable[[Any], str] = lambda value: ""


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise ConfigError with all arguments that are not valid."""
    problems = []
    for name, value in arguments.items():
        rule = RULES[name]
        if not rule.accepts(value):
            message = f"{name} must be {rule.expected}"
            advice = Suggestion(advice=rule.advice(value))
            problems.append(
                Problem(
                    message,
                    (name,),
                    component="Runner",
                    parameter=name,
                    value=value,
                    suggestion=advice,
                )
            )
    if problems:
        raise ConfigError(problems)


def _of_type(hint: Any) -> Callable[[Any], bool]:
    return lambda value: fits(value, hint)


def _is_model(value: Any) -> bool:
    return isinstance(value, torch.nn.Module)


def _is_loader(value: Any) -> bool:
    is_iterable = hasattr(value, "__iter__") or hasattr(value, "__getitem__")
    return value is None or (is_iterable and not isinstance(value, (str, type)))


def _is_train_loader(value: Any) -> bool:
    return _is_loader(value) and not isinstance(value, Mapping)


def _is_optimizer(value: Any) -> bool:
    if isinstance(value, Mapping):
        return len(value) > 0 and all(_is_optimizer(each) for each in value.values())
    return value is None or _has_parts(value, OPTIMIZER_PARTS)


def _is_scheduler(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_scheduler(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return all(_is_scheduler(each) for each in value)
    return value is None or _has_parts(value, SCHEDULER_METHODS)


def _has_parts(value: Any, parts: tuple[str, ...]) -> bool:
    return not isinstance(value, type) and all(hasattr(value, part) for part in parts)


def _is_loss(value: Any) -> bool:
    return value is None or (callable(value) and not isinstance(value, type))


def _is_collection(value: Any) -> bool:
    return value is None or (hasattr(value, "__iter__") and not isinstance(value, str))


def _is_directory(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, (str, os.PathLike)) and not Path(value).is_file()


def _is_device(value: Any) -> bool:
    if isinstance(value, str) and value != "auto":
        try:
            torch.device(value)
        except RuntimeError:
            return False
    return isinstance(value, (str, torch.device))


def _advise_object(value: Any) -> str:
    if isinstance(value, type):
        return f"pass an object, {value.__name__}(…), not the class"
    if isinstance(value, str):
        return "names are for configs; pass an object"
    return ""


def _advise_optimizer(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "pass several by name, as a dict"
    return _advise_object(value)


def _advise_train_loader(value: Any) -> str:
    if isinstance(value, Mapping):
        return "combine several loaders in one iterable, which yields what train_step(batch) takes"
    return _advise_object(value)


def _advise_list(value: Any) -> str:
    return f"pass [{value!r}]" if isinstance(value, str) else ""


def _advise_directory(value: Any) -> str:
    return "there is a file with this name" if isinstance(value, (str, os.PathLike)) else ""


RULES = {
    "model": Rule("a torch.nn.Module", _is_model, _advise_object),
    "train_loader": Rule("an iterable of batches", _is_train_loader, _advise_train_loader),
    "val_loader": Rule("an iterable of batches, or several by name", _is_loader, _advise_object),
    "test_loader": Rule("an iterable of batches, or several by name", _is_loader, _advise_object),
    "optimizer": Rule(
        "a torch.optim.Optimizer, or several by name", _is_optimizer, _advise_optimizer
    ),
    "loss_fn": Rule("a function of predictions and targets", _is_loss, _advise_object),
    "metrics": Rule("a list or mapping of metrics", _is_collection, _advise_list),
    "hooks": Rule("a list of hooks", lambda value: True),  # HOOKS reports each wrong entry
    "drop_hooks": Rule("a list of names", _is_collection, _advise_list),
    "max_epochs": Rule("a whole number of at least 1", lambda value: True),  # see preflight
    "max_iters": Rule("a whole number of at least 1", lambda value: True),
    "work_dir": Rule("a directory", _is_directory, _advise_directory),
    "scheduler": Rule(
        "a scheduler of torch.optim.lr_scheduler, a list, or several by name",
        _is_scheduler,
        _advise_object,
    ),
    "seed": Rule("a whole number", _of_type(int | None)),
    "device": Rule(
        "'auto', 'cpu', 'cuda', 'cuda:0' or another device of torch",
        _is_device,
        lambda value: "did you mean 'cuda'?" if value == "gpu" else "",
    ),
    "resume": Rule(
        "'auto' or the path of a checkpoint",
        _of_type(str | Path | None),
        lambda value: "use 'auto' for the newest checkpoint" if value is True else "",
    ),
    "load_from": Rule("the path of a checkpoint", _of_type(str | Path | None)),
    "load_strict": Rule("True or False", _of_type(bool)),
    "hook_order": Rule("'nested' or 'flat'", _of_type(Order)),
    "hook_budget": Rule("a percentage or a fraction", _of_type(str | float)),
    "config": Rule("a mapping", _of_type(Mapping[str, Any] | None)),
    "strategy": Rule("a name, or a mapping with its type", _of_type(str | Mapping[str, Any])),
    "sync_bn": Rule("True or False", _of_type(bool)),
    "compile": Rule("True, False or options of torch.compile", _of_type(bool | Mapping[str, Any])),
    "deterministic": Rule("True or False", _of_type(bool)),
    "locate_error": Rule("a function", lambda value: value is None or callable(value)),
}
