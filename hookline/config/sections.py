"""Checks of the sections of a config: each returns the problems of one section."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch

from hookline.config.components import (
    as_component,
    check_component,
    duplicate_name_problem,
    misspelled_keys,
    split_parameter,
    with_default,
    with_title,
)
from hookline.config.optimizers import check_optimizer
from hookline.config.schedules import check_checkpoint, check_policy, check_scheduler
from hookline.config.schema import (
    DEFAULT_LOSS,
    LOADER,
    SPLITS,
    TRAINING,
    suggest_key,
)
from hookline.data import DATASETS, DataInfo
from hookline.data.options import check_loader, find_function
from hookline.dist import World, choose_strategy
from hookline.engine import HOOKS
from hookline.errors import ConfigError, KeyPath, Problem, Suggestion, dotted, suggest
from hookline.hooks.builder import DROPPABLE
from hookline.metrics import check_metric
from hookline.models import MODELS
from hookline.optim import LOSSES
from hookline.profiling.cost_report import parse_percentage
from hookline.remote import RemoteDirectory, find_url_problem, is_url
from hookline.signature import fits, type_problem

COMPILE_IN_PYTHON = Suggestion(advice="pass it in Python: Runner(compile={'options': …})")
DEVICES = ("auto", "cpu", "cuda", "cuda:0", "mps", "xpu")  # for suggestions


def check_keys(given: Mapping[Any, Any], schema: Mapping[str, Any], path: KeyPath) -> list[Problem]:
    """Return a problem for each unknown key and each value of a wrong type."""
    problems = []
    for key, value in given.items():
        about: dict[str, Any] = {"parameter": str(key)}
        if key not in schema:
            about["suggestion"] = suggest_key(str(key), path, schema)
            problems.append(Problem("unknown key", (*path, key), **about))
        elif value is not None and not fits(value, schema[key]):
            problems.append(type_problem("must be", value, schema[key], (*path, key), **about))
    return problems


def _check_model(value: Any) -> list[Problem]:
    filled = {field.name for field in fields(DataInfo)}
    return check_component(MODELS, value, ("model",), filled)


def _check_dataset(value: Any) -> list[Problem]:
    known = (*SPLITS, "type")
    given = as_component(value)
    splits = {key: item for key, item in given.items() if key in SPLITS and item is not None}
    misspelled = misspelled_keys(given, known, ("dataset",))
    if misspelled:
        return misspelled
    if given.get("type") is not None or not splits:
        return check_component(DATASETS, given, ("dataset",), split_parameter(given))
    problems = _unknown_keys((key for key in given if key not in known), known, ("dataset",))
    for split, item in splits.items():
        problems += check_component(DATASETS, item, ("dataset", split), split_parameter(item))
    if "train" not in splits:
        problems.append(Problem("missing 'train'", ("dataset",), parameter="train"))
    return problems


def _check_loader(value: dict[str, Any]) -> list[Problem]:
    common = {key: item for key, item in value.items() if key not in SPLITS}
    problems = _check_options(common, {}, ("loader",), [*LOADER, *SPLITS])
    for split in SPLITS:
        own = value.get(split)
        if isinstance(own, dict):
            problems += _check_options(own, common, ("loader", split), LOADER)
        elif own is not None:
            problems.append(Problem("must be a mapping", ("loader", split), value=own))
    return problems


def _check_options(
    own: dict[str, Any], common: dict[str, Any], path: KeyPath, known: Iterable[str]
) -> list[Problem]:
    problems = _unknown_keys((key for key in own if key not in LOADER), known, path)
    problems += _check_collate(own.get("collate_fn"), (*path, "collate_fn"))
    options = {
        key: item
        for key, item in {**common, **own}.items()
        if key in LOADER and key != "collate_fn" and item is not None
    }
    for problem in check_loader(options):
        if problem.path[0] in own:
            problems.append(with_title(problem, path, dotted(path)))
    return problems


def _unknown_keys(keys: Iterable[Any], known: Iterable[str], path: KeyPath) -> list[Problem]:
    options = list(known)
    problems = []
    for key in keys:
        about: dict[str, Any] = {"parameter": str(key), "suggestion": suggest(str(key), options)}
        problems.append(Problem("unknown key", (*path, key), **about))
    return problems


def _check_collate(value: Any, path: KeyPath) -> list[Problem]:
    about: dict[str, Any] = {"path": path, "parameter": "collate_fn"}
    if value is None:
        return []
    if not isinstance(value, str):  # A function object can be neither saved nor printed.
        return [Problem("must be the dotted path of a function", value=value, **about)]
    try:
        find_function(value)
    except ConfigError as error:
        return [replace(problem, **about) for problem in error.problems]
    return []


def _check_training(value: dict[str, Any]) -> list[Problem]:
    given = {key: item for key, item in value.items() if item is not None}
    problems = check_keys(value, TRAINING, ("training",))
    lengths = [key for key in ("epochs", "iters") if key in given]
    if len(lengths) != 1:
        found = "both" if lengths else "neither"
        message = f"needs exactly one of 'epochs' and 'iters', but has {found}"
        problems.append(Problem(message, ("training",), parameter="epochs"))
    for key in (*lengths, "max_train_batches", "max_val_batches", "overfit_batches"):
        if key in given:
            problems += _at_least(1, given[key], ("training", key))
    if "sanity_val_batches" in given:
        problems += _at_least(0, given["sanity_val_batches"], ("training", "sanity_val_batches"))
    if fits(given.get("loss"), TRAINING["loss"]):
        problems += _check_loss(given["loss"])
    if fits(given.get("metrics"), TRAINING["metrics"]):
        for index, metric in enumerate(given["metrics"]):
            path = ("training", "metrics", index)
            problems += [with_title(problem, path) for problem in check_metric(metric)]
    return problems


def _check_loss(value: Any) -> list[Problem]:
    path: KeyPath = ("training", "loss")
    problems = check_component(LOSSES, value, path, default=DEFAULT_LOSS)
    given = with_default(value, DEFAULT_LOSS)
    name = "label_smoothing"
    if problems or given.get(name) is None:
        return problems
    is_smoothed = LOSSES.get(given["type"]) is torch.nn.CrossEntropyLoss
    if is_smoothed and not 0 <= given[name] <= 1:  # torch checks it only in the first batch.
        message = "must be between 0 and 1"
        return [Problem(message, (*path, name), parameter=name, value=given[name])]
    return []


def _check_hooks(value: list[Any]) -> list[Problem]:
    problems: list[Problem] = []
    names: dict[str, int] = {}
    for index, hook in enumerate(value):
        problems += check_component(HOOKS, hook, ("hooks", index))
        name = hook.get("name") if isinstance(hook, dict) else None
        if isinstance(name, str) and names.setdefault(name, index) != index:
            owner = f"hooks[{names[name]}]"
            problems.append(duplicate_name_problem(name, ("hooks", index), owner))
    return problems


def _check_drop_hooks(value: list[str]) -> list[Problem]:
    problems = []
    for index, name in enumerate(value):
        if name not in DROPPABLE:
            about: dict[str, Any] = {"value": name, "suggestion": suggest(name, DROPPABLE)}
            problems.append(Problem("is not a default hook", ("drop_hooks", index), **about))
    return problems


def _check_work_dir(value: str) -> list[Problem]:
    about: dict[str, Any] = {"path": ("work_dir",), "parameter": "work_dir"}
    if not value or "\0" in value:
        return [Problem("must be the path of a directory", value=value, **about)]
    if is_url(value):
        problem = find_url_problem(value, "work_dir")
        return [] if problem is None else [problem]
    try:
        os.stat(value)
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return [Problem(f"cannot be used: {error.strerror}", **about)]
    return []


def _check_seed(value: int) -> list[Problem]:
    if 0 <= value < 2**32:
        return []
    return [Problem("must be between 0 and 2**32 - 1", ("seed",), parameter="seed", value=value)]


def _check_device(value: str) -> list[Problem]:
    try:
        torch.device("cpu" if value == "auto" else value)
    except RuntimeError:
        suggestion = suggest(value.lower().replace("gpu", "cuda"), DEVICES)
        about: dict[str, Any] = {"parameter": "device", "value": value, "suggestion": suggestion}
        return [Problem("must be 'auto' or a device of torch", ("device",), **about)]
    return []


def _check_strategy(value: Any) -> list[Problem]:
    try:
        choose_strategy(value, World())
    except ConfigError as error:
        return [replace(problem, path=("strategy",)) for problem in error.problems]
    return []


def _check_hook_budget(value: Any) -> list[Problem]:
    try:
        parse_percentage(value)
    except ConfigError as error:
        return [replace(problem, path=("hook_budget",)) for problem in error.problems]
    return []


def _check_compile(value: bool | dict[str, Any]) -> list[Problem]:
    """Return the problems of the arguments of `torch.compile`.

    One of its options is the compiler: a program.
    """
    if isinstance(value, bool):
        return []
    known = {*inspect.signature(torch.compile).parameters, "regions"} - {"model"}
    problems = _unknown_keys((key for key in value if key not in known), known, ("compile",))
    problems += _check_backend(value.get("backend"))
    options = value.get("options")
    if not fits(options, dict[str, Any] | None):
        about: dict[str, Any] = {"parameter": "options", "value": options}
        return [*problems, Problem("must be a mapping", ("compile", "options"), **about)]
    for name, option in (options or {}).items():
        if not fits(option, bool | float | None):
            about = {"parameter": str(name), "value": option, "suggestion": COMPILE_IN_PYTHON}
            message = "must be a number, true or false: text may name a program"
            problems.append(Problem(message, ("compile", "options", name), **about))
    return problems


def _check_backend(value: Any) -> list[Problem]:
    """Return a problem if torch has no such compiler. Its list takes a second to import."""
    if value is None:
        return []
    backends = torch.compiler.list_backends(exclude_tags=())  # type: ignore[no-untyped-call]
    if value in backends:
        return []
    usual = torch.compiler.list_backends()  # type: ignore[no-untyped-call]
    about: dict[str, Any] = {"parameter": "backend", "value": value}
    suggestion = suggest(str(value), [*usual, "eager"])
    return [Problem("unknown compiler", ("compile", "backend"), suggestion=suggestion, **about)]


def _check_resume(value: str) -> list[Problem]:
    if value == "auto":
        return []
    is_word = "/" not in value and "." not in value
    suggestion = suggest(value, ["auto"]) if is_word else Suggestion()
    return _check_exists("resume", value, "'auto', null or a checkpoint", suggestion)


def _check_load_from(value: str) -> list[Problem]:
    return _check_exists("load_from", value, "null or a checkpoint", Suggestion())


def _check_exists(key: str, value: str, expected: str, suggestion: Suggestion) -> list[Problem]:
    if is_url(value):
        return _check_url(key, value)
    if os.path.exists(value):
        return []
    message = f"must be {expected}; there is no file {value!r}"
    return [Problem(message, (key,), parameter=key, suggestion=suggestion)]


def _check_url(key: str, value: str) -> list[Problem]:
    """Return a problem if no installed package can open a URL. It is not opened here."""
    try:
        RemoteDirectory(value).check_available()
    except ConfigError as error:
        return [replace(problem, path=(key,), parameter=key) for problem in error.problems]
    return []


def _at_least(minimum: int, value: Any, path: KeyPath) -> list[Problem]:
    if not fits(value, float) or value >= minimum:  # check_keys reports a wrong type.
        return []
    about: dict[str, Any] = {"parameter": str(path[-1]), "value": value}
    return [Problem(f"must be at least {minimum}", path, **about)]


SECTIONS: dict[str, Callable[[Any], list[Problem]]] = {
    "model": _check_model,
    "dataset": _check_dataset,
    "loader": _check_loader,
    "optimizer": check_optimizer,
    "checkpoint": check_checkpoint,
    "lr_config": partial(check_policy, "lr_config"),
    "momentum_config": partial(check_policy, "momentum_config"),
    "scheduler": check_scheduler,
    "training": _check_training,
    "hooks": _check_hooks,
    "drop_hooks": _check_drop_hooks,
    "work_dir": _check_work_dir,
    "seed": _check_seed,
    "device": _check_device,
    "hook_budget": _check_hook_budget,
    "strategy": _check_strategy,
    "resume": _check_resume,
    "load_from": _check_load_from,
    "compile": _check_compile,
}
