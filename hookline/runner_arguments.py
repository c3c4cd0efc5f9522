"""The rules for the arguments of a Runner, checked before anything is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, get_args

import torch
from torch.utils.data import DataLoader

from hookline.data.protocols import is_positioned
from hookline.engine import BaseHook
from hookline.engine.manager import Order
from hookline.errors import ConfigError, Problem, Suggestion, suggest
from hookline.foreign_names import suggest_argument
from hookline.optim import LOSSES, OPTIMIZERS, SCHEDULERS
from hookline.registry import Registry
from hookline.remote import find_url_problem, is_url
from hookline.signature import fits

SCHEDULER_METHODS = ("step", "state_dict")
RESUME_WORDS = ("last", "latest", "newest", "best")  # of other frameworks; here they are paths
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


def refuse_unknown(names: Iterable[str]) -> None:
    """Raise TypeError, as Python does, if there are unknown arguments; suggest the nearest."""
    problems = []
    for name in names:
        message = f"unknown argument {name!r}"
        suggestion = suggest_argument(name) or suggest(name, RULES)
        problems.append(Problem(message, component="Runner", suggestion=suggestion))
    if problems:
        raise TypeError("\n".join(str(problem) for problem in problems))


def refuse_in_train(extra: Sequence[Any], names: Iterable[str]) -> None:
    """Raise TypeError if `Runner.train` gets arguments that belong to another call."""
    problems = []
    if extra:
        advice = Suggestion(advice="pass them to Runner(model, train_loader=…, val_loader=…)")
        message = "takes no model and no data"
        problems.append(Problem(message, component="Runner.train", suggestion=advice))
    for name in names:
        own = name if name in RULES else suggest_argument(name).nearest
        suggestion = suggest(name, ("max_epochs", "max_iters"))
        if own is not None:
            suggestion = Suggestion(advice=f"pass {own}=… to Runner(…)")
        message = f"unknown argument {name!r}"
        problems.append(Problem(message, component="Runner.train", suggestion=suggestion))
    if problems:
        raise TypeError("\n".join(str(problem) for problem in problems))


def _of_type(hint: Any) -> Callable[[Any], bool]:
    return lambda value: fits(value, hint)


def _is_model(value: Any) -> bool:
    return isinstance(value, torch.nn.Module)


def _is_loader(value: Any) -> bool:
    is_iterable = hasattr(value, "__iter__") or hasattr(value, "__getitem__")
    is_batches = is_iterable and not isinstance(value, (str, type)) and not _holds_loaders(value)
    return value is None or is_batches


def _holds_loaders(value: Any) -> bool:
    """Return whether a list has loaders where batches are expected."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return isinstance(value[0], DataLoader) or is_positioned(value[0])


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


def _is_metrics(value: Any) -> bool:
    """Return whether a value is a list or a mapping; a metric of torchmetrics has __iter__, too."""
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return False  # the config of one metric
    is_single = hasattr(value, "compute") and not hasattr(
        value, "keys"
    )  # unlike a MetricCollection
    return _is_collection(value) and not is_single


def _is_seed(value: Any) -> bool:
    return value is None or (fits(value, int) and 0 <= value < 2**32)


def _is_hook_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, (str, type, Mapping, BaseHook))


def _is_count(value: Any) -> bool:
    return value is None or (fits(value, int) and value >= 1)


def _is_directory(value: Any) -> bool:
    if value is None:
        return True
    if value == "":
        return False  # It would mean the current directory.
    if is_url(value):
        return find_url_problem(value, "work_dir") is None
    return isinstance(value, (str, os.PathLike)) and _find_file(value) is None


def _is_resume(value: Any) -> bool:
    if value in RESUME_WORDS or _is_misspelled_auto(value):
        return Path(value).exists()
    return fits(value, str | Path | None)


def _find_file(path: str | os.PathLike[str]) -> Path | None:
    """Return the part of a path that is a file and not a directory, if there is one."""
    for part in (Path(path), *Path(path).parents):
        if part.is_file():
            return part
    return None


def _is_device(value: Any) -> bool:
    if value == "auto":
        return True
    if not isinstance(value, (str, torch.device)):
        return False
    try:
        torch.empty(0, device=value)
    except (RuntimeError, AssertionError):  # AssertionError: torch was built without CUDA.
        return False
    return True


def _advise_object(value: Any) -> str:
    if isinstance(value, type):
        return f"pass an object, {value.__name__}(…), not the class"
    if isinstance(value, str):
        return "names are for configs; pass an object"
    if isinstance(value, (FunctionType, partial)):
        return "pass the object that the function makes"
    return ""


def _advise_name(value: Any, registry: Registry[Any], arguments: str) -> str:
    """Advise on a name in place of an object of the class that the name probably stands for."""
    if not isinstance(value, str):
        return _advise_object(value)
    nearest = suggest(value, registry.names()).nearest
    if nearest is None:
        return _advise_object(value)
    name = registry.get(nearest).__name__
    return f"names are for configs; pass an object, {name}({arguments})"


def _advise_optimizer(value: Any) -> str:
    example = "torch.optim.SGD(model.parameters(), lr=0.1)"
    if isinstance(value, (list, tuple)):
        is_single = len(value) == 1 and _is_optimizer(value[0])
        return "pass the optimizer itself" if is_single else "pass several by name, as a dict"
    if isinstance(value, Mapping):
        return next((_advise_optimizer(each) for each in value.values()), f"pass {example}")
    if isinstance(value, Iterator):
        return f"pass {example}"
    return _advise_name(value, OPTIMIZERS, "model.parameters(), lr=…")


def _advise_scheduler(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        value = value["type"]
    if isinstance(value, (list, tuple)):
        return next((_advise_scheduler(each) for each in value if not _is_scheduler(each)), "")
    return _advise_name(value, SCHEDULERS, "optimizer, …")


def _advise_loss(value: Any) -> str:
    return _advise_name(value, LOSSES, "")


def _advise_loader(value: Any) -> str:
    if _holds_loaders(value):
        return "pass several by name, as a dict"
    if isinstance(value, FunctionType):
        return "pass the batches that the function returns"
    return _advise_object(value)


def _advise_list(value: Any) -> str:
    if isinstance(value, str):
        return f"pass [{value!r}]"
    if hasattr(value, "compute") or isinstance(value, FunctionType):
        return "pass a list with this one"
    return "pass a list with this one" if isinstance(value, (Mapping, BaseHook)) else ""


def _advise_number(value: Any) -> str:
    """Advise on a number in quotes, or a whole number with a fraction of zero."""
    if isinstance(value, int):
        return ""  # It is out of range, or True or False.
    try:
        is_whole = float(value).is_integer()
    except (TypeError, ValueError):
        return ""
    return f"pass {int(float(value))}" if is_whole else ""


def _advise_directory(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)) or value == "":
        return "pass a path"
    if is_url(value):
        problem = find_url_problem(str(value), "work_dir")
        return "" if problem is None else f"{problem.message}{problem.suggestion}"
    return f"there is a file with the name {str(_find_file(value))!r}; choose another"


def _advise_device(value: Any) -> str:
    available = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    listed = f"available here: {', '.join(available)}"
    if fits(value, int):
        return f"did you mean 'cuda:{value}'? {listed}"
    if value == "gpu":
        return f"did you mean 'cuda'? {listed}"
    if isinstance(value, str) and value.lower() != value and _is_device(value.lower()):
        return f"did you mean {value.lower()!r}?"
    return listed


def _advise_resume(value: Any) -> str:
    if value in RESUME_WORDS:
        return "use 'auto' for the newest checkpoint in work_dir, or the path of another one"
    if value is True:
        return "use 'auto' for the newest checkpoint in work_dir"
    if value is False:
        return "leave it out to start at the beginning"
    return "did you mean 'auto'?" if _is_misspelled_auto(value) else ""


def _is_misspelled_auto(value: Any) -> bool:
    return isinstance(value, str) and value.lower() == "auto" != value


def _advise_choice(*choices: str) -> Callable[[Any], str]:
    def advise(value: Any) -> str:
        nearest = suggest(str(value), choices).nearest
        return f"did you mean {nearest!r}?" if nearest else ""

    return advise


COUNT = Rule("a whole number of at least 1", _is_count, _advise_number)
LOADERS = Rule("an iterable of batches, or several by name", _is_loader, _advise_loader)
FLAG = Rule("True or False", _of_type(bool))

RULES = {
    "model": Rule("a torch.nn.Module", _is_model, _advise_object),
    "train_loader": LOADERS,
    "val_loader": LOADERS,
    "test_loader": LOADERS,
    "optimizer": Rule(
        "a torch.optim.Optimizer, or several by name", _is_optimizer, _advise_optimizer
    ),
    "loss_fn": Rule("a function of predictions and targets", _is_loss, _advise_loss),
    "metrics": Rule("a list or mapping of metrics", _is_metrics, _advise_list),
    "hooks": Rule("a list of hooks", _is_hook_list, _advise_list),
    "drop_hooks": Rule("a list of names", _is_collection, _advise_list),
    "max_epochs": COUNT,
    "max_iters": COUNT,
    "max_train_batches": COUNT,
    "max_val_batches": COUNT,
    "overfit_batches": COUNT,
    "sanity_val_batches": Rule(
        "a whole number, 0 for none",
        lambda value: fits(value, int) and value >= 0,
        _advise_number,
    ),
    "work_dir": Rule("a directory", _is_directory, _advise_directory),
    "scheduler": Rule(
        "a scheduler of torch.optim.lr_scheduler, a list, or several by name",
        _is_scheduler,
        _advise_scheduler,
    ),
    "seed": Rule("a whole number from 0 to 2**32 - 1", _is_seed, _advise_number),
    "device": Rule("'auto' or an available device of torch", _is_device, _advise_device),
    "resume": Rule("'auto' or the path of a checkpoint", _is_resume, _advise_resume),
    "load_from": Rule("the path of a checkpoint", _of_type(str | Path | None)),
    "load_strict": FLAG,
    "hook_order": Rule("'nested' or 'flat'", _of_type(Order), _advise_choice(*get_args(Order))),
    "hook_budget": Rule("a percentage or a fraction", _of_type(str | float)),
    "config": Rule("a mapping", _of_type(Mapping[str, Any] | None)),
    "strategy": Rule("a name, or a mapping with its type", _of_type(str | Mapping[str, Any])),
    "sync_bn": FLAG,
    "compile": Rule("True, False or options of torch.compile", _of_type(bool | Mapping[str, Any])),
    "deterministic": FLAG,
    "locate_error": Rule("a function", lambda value: value is None or callable(value)),
}
