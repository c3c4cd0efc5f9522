"""Everything that is wrong with a config, found in one go and before anything is built."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, Literal, get_args, get_origin

import torch

from hookline.config.components import as_component, check_component, failure, misspelt_keys, split_parameter, titled, with_default
from hookline.config.load import load_config
from hookline.config.modules import explained, nearest_module
from hookline.config.places import Config
from hookline.config.schedules import check_policy, check_scheduler
from hookline.config.schema import DEFAULT_LOSS, DEFAULT_OPTIMIZER, LOADER, REQUIRED, SPLITS, TOP_LEVEL, TRAINING, suggest_key
from hookline.data import DATASETS, DataInfo
from hookline.data.options import check_loader, find_function
from hookline.dist import World, choose_strategy
from hookline.engine import HOOKS
from hookline.engine.cost_report import as_share
from hookline.errors import ConfigError, Path, Problem, dotted, suggest
from hookline.hooks.builder import DROPPABLE
from hookline.metrics import check_metric
from hookline.models import MODELS
from hookline.optim import LOSSES, OPTIMIZERS
from hookline.signature import describe, fits

MAX_SHOWN = 20  # an error fits on one screen


def check(config: Mapping[str, Any]) -> None:
    """Raise one ConfigError with all problems of a config, if it has any."""
    refuse(validate(config))


def refuse(problems: Iterable[Problem]) -> None:
    """Raise one ConfigError with problems that have their places, if there are any, in the order of the lines."""
    found = _in_order(problems)
    if len(found) > MAX_SHOWN:
        found = [*found[:MAX_SHOWN], Problem(f"… and {len(found) - MAX_SHOWN} more problems")]
    if found:
        raise ConfigError(found)


def validate(config: Mapping[str, Any]) -> list[Problem]:
    """All problems of a config, each with path, file and line, in the order of the lines."""
    config = config if isinstance(config, Config) else load_config(config)
    given = {key: value for key, value in config.items() if value is not None}
    problems = _check_imports(given.get("custom_imports")) + _check_keys(config, TOP_LEVEL, ())
    wrong = {problem.path[0] for problem in problems}
    for key, value in given.items():
        if key in _SECTIONS and key not in wrong:
            problems += _SECTIONS[key](value)
    problems += [Problem(f"missing {key!r}, for example {example}") for key, example in REQUIRED.items() if key not in given]
    return _in_order(config.locate(_quoted(config, problem)) for problem in problems)


def _quoted(config: Config, problem: Problem) -> Problem:
    """The problem; where a number is wanted and text that looks like one is given, with what to do about that."""
    value = config.at(problem.path)
    if (
        not isinstance(value, str)
        or " number" not in problem.message.partition(", got ")[0]
        or not re.fullmatch(r"[-+.\d]+(e[-+]?\d+)?", value)
    ):
        return problem
    return replace(problem, message=f"{problem.message}, which is text: leave out the quotes")


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))


def _check_imports(modules: Any) -> list[Problem]:
    problems = []
    for index, name in enumerate(modules if isinstance(modules, list) else []):
        try:
            importlib.import_module(str(name))
        except Exception as error:
            absent = isinstance(error, ModuleNotFoundError) and str(name).startswith(error.name or "?")  # not one that it imports
            hint = nearest_module(str(name)) if absent else ""
            problems.append(Problem(f"cannot import {name!r}: {failure(error)}{hint}", ("custom_imports", index)))
    return problems


def _check_keys(given: Mapping[Any, Any], schema: Mapping[str, Any], path: Path) -> list[Problem]:
    problems = []
    for key, value in given.items():
        if key not in schema:
            problems.append(Problem(f"unknown key{suggest_key(str(key), path, schema)}", (*path, key)))
        elif value is not None and not fits(value, schema[key]):
            options = get_args(schema[key]) if isinstance(value, str) and get_origin(schema[key]) is Literal else ()
            hint = suggest(str(value), options)
            problems.append(Problem(f"must be {describe(schema[key])}, got {value!r}{hint}", (*path, key)))
    return problems


def _check_model(value: Any) -> list[Problem]:
    return check_component(MODELS, value, ("model",), filled={field.name for field in fields(DataInfo)})


def _check_dataset(value: Any) -> list[Problem]:
    known = (*SPLITS, "type")
    given = as_component(value)
    splits = {key: item for key, item in given.items() if key in SPLITS and item is not None}
    if misspelt := misspelt_keys(given, known, ("dataset",)):
        return misspelt
    if given.get("type") is not None or not splits:
        return check_component(DATASETS, given, ("dataset",), filled=split_parameter(given))
    problems = [Problem(f"unknown key{suggest(str(key), known)}", ("dataset", key)) for key in given if key not in known]
    for split, item in splits.items():
        problems += check_component(DATASETS, item, ("dataset", split), filled=split_parameter(item))
    if "train" not in splits:
        problems.append(Problem("missing 'train'", ("dataset",)))
    return problems


def _check_loader(value: dict[str, Any]) -> list[Problem]:
    common = {key: item for key, item in value.items() if key not in SPLITS}
    problems = _check_options(common, {}, ("loader",), [*LOADER, *SPLITS])
    for split in SPLITS:
        own = value.get(split)
        if isinstance(own, dict):
            problems += _check_options(own, common, ("loader", split), LOADER)
        elif own is not None:
            problems.append(Problem(f"must be a mapping, got {own!r}", ("loader", split)))
    return problems


def _check_options(own: dict[str, Any], common: dict[str, Any], path: Path, known: Iterable[str]) -> list[Problem]:
    problems = [Problem(f"unknown key{suggest(str(key), known)}", (*path, key)) for key in own if key not in LOADER]
    problems += _check_collate(own.get("collate_fn"), (*path, "collate_fn"))
    options = {key: item for key, item in {**common, **own}.items() if key in LOADER and key != "collate_fn" and item is not None}
    for problem in check_loader(options):
        if problem.path[0] in own:
            problems.append(replace(problem.below(*path), message=problem.message.removeprefix("loader: "), where=dotted(path)))
    return problems


def _check_collate(value: Any, path: Path) -> list[Problem]:
    if value is None:
        return []
    if not isinstance(value, str):  # a function itself could be neither saved nor shown
        return [Problem(f"must be the dotted path of a function, got {value!r}", path)]
    try:
        find_function(value)
    except ConfigError as error:
        return [explained(Problem(str(error), path), value)]
    except Exception as error:  # the user's own module fails while it is imported
        return [Problem(f"cannot import {value!r}: {failure(error)}", path)]
    return []


def _check_optimizer(value: Any) -> list[Problem]:
    problems = check_component(OPTIMIZERS, value, ("optimizer",), {"params"}, DEFAULT_OPTIMIZER)
    lr = as_component(value).get("lr")
    if lr is not None and (not fits(lr, float) or not lr > 0):
        problems.append(Problem(f"must be a number above 0, got {lr!r}", ("optimizer", "lr")))
    return problems or _check_values(with_default(value, DEFAULT_OPTIMIZER))


def _check_values(optimizer: dict[str, Any]) -> list[Problem]:
    """What one of torch's optimizers says of its values; others may ask for more than a parameter that stands for all."""
    cls = OPTIMIZERS.get(optimizer["type"])
    if not cls.__module__.startswith("torch.optim."):
        return []
    try:
        OPTIMIZERS.build(optimizer, params=[torch.zeros(1, 1, requires_grad=True)])
    except ConfigError as error:
        return [titled(problem, ("optimizer",), cls.__name__) for problem in error.problems]
    except RuntimeError:
        pass  # about the kind or device of its parameters, which this one does not share with the model's
    return []


def _check_training(value: dict[str, Any]) -> list[Problem]:
    given = {key: item for key, item in value.items() if item is not None}
    problems = _check_keys(value, TRAINING, ("training",))
    lengths = [key for key in ("epochs", "iters") if key in given]
    if len(lengths) != 1:
        problems.append(Problem(f"needs exactly one of 'epochs' and 'iters', got {'both' if lengths else 'neither'}", ("training",)))
    for key in lengths:
        problems += _at_least(1, given[key], ("training", key))
    if fits(given.get("loss"), TRAINING["loss"]):
        problems += _check_loss(given["loss"])
    if fits(given.get("metrics"), TRAINING["metrics"]):
        for index, metric in enumerate(given["metrics"]):
            problems += _check_metric(metric, ("training", "metrics", index))
    return problems


def _check_loss(value: Any) -> list[Problem]:
    path: Path = ("training", "loss")
    problems = check_component(LOSSES, value, path, default=DEFAULT_LOSS)
    given = with_default(value, DEFAULT_LOSS)
    smoothing = given.get("label_smoothing")
    if problems or smoothing is None or LOSSES.get(given["type"]) is not torch.nn.CrossEntropyLoss or 0 <= smoothing <= 1:
        return problems
    return [Problem(f"must lie between 0 and 1, got {smoothing!r}", (*path, "label_smoothing"))]  # torch finds out in the first batch


def _check_metric(value: Any, path: Path) -> list[Problem]:
    try:
        return [titled(problem, path) for problem in check_metric(value)]
    except Exception as error:  # the user's own module, named by its dotted path, fails while it is imported
        return [Problem(f"cannot import it: {failure(error)}", path)]


def _check_hooks(value: list[Any]) -> list[Problem]:
    problems: list[Problem] = []
    names: dict[str, int] = {}
    for index, hook in enumerate(value):
        problems += check_component(HOOKS, hook, ("hooks", index))
        name = hook.get("name") if isinstance(hook, dict) else None
        if isinstance(name, str) and names.setdefault(name, index) != index:
            problems.append(Problem(f"the name {name!r} is that of hooks[{names[name]}] already", ("hooks", index, "name")))
    return problems


def _check_drop_hooks(value: list[str]) -> list[Problem]:
    wrong = [(index, name) for index, name in enumerate(value) if name not in DROPPABLE]
    return [Problem(f"{name!r} is not a default hook{suggest(name, DROPPABLE)}", ("drop_hooks", index)) for index, name in wrong]


def _check_seed(value: int) -> list[Problem]:
    return [] if 0 <= value < 2**32 else [Problem(f"must lie between 0 and 2**32 - 1, got {value}", ("seed",))]


def _check_device(value: str) -> list[Problem]:
    try:
        torch.device("cpu" if value == "auto" else value)
    except RuntimeError:
        meant = value.lower().replace("gpu", "cuda")
        hint = suggest(meant, ["auto", "cpu", "cuda", "cuda:0", "mps", "xpu"])
        return [Problem(f"must be 'auto' or a device of torch, got {value!r}{hint}", ("device",))]
    return []


def _check_strategy(value: Any) -> list[Problem]:
    try:
        choose_strategy(value, World())
    except ConfigError as error:
        return [Problem(str(error).removeprefix("strategy").removeprefix(": ").strip(), ("strategy",))]
    return []


def _check_hook_budget(value: Any) -> list[Problem]:
    try:
        as_share(value)
    except ValueError as error:
        return [Problem(str(error).removeprefix("hook_budget "), ("hook_budget",))]
    return []


def _check_resume(value: str) -> list[Problem]:
    return [] if value == "auto" else _check_exists("resume", value, "'auto', null or the path of a checkpoint")


def _check_load_from(value: str) -> list[Problem]:
    return _check_exists("load_from", value, "null or the path of a checkpoint")


def _check_exists(key: str, value: str, wanted: str) -> list[Problem]:
    hint = suggest(value, ["auto"]) if key == "resume" and "/" not in value and "." not in value else ""
    return [] if os.path.exists(value) else [Problem(f"must be {wanted}; there is no {value!r}{hint}", (key,))]


def _at_least(least: int, value: Any, path: Path) -> list[Problem]:
    if not fits(value, float) or value >= least:  # another type is another problem, told elsewhere
        return []
    return [Problem(f"must be at least {least}, got {value!r}", path)]


_SECTIONS: dict[str, Callable[[Any], list[Problem]]] = {
    "model": _check_model,
    "dataset": _check_dataset,
    "loader": _check_loader,
    "optimizer": _check_optimizer,
    "lr_config": partial(check_policy, "lr_config"),
    "momentum_config": partial(check_policy, "momentum_config"),
    "scheduler": check_scheduler,
    "training": _check_training,
    "hooks": _check_hooks,
    "drop_hooks": _check_drop_hooks,
    "seed": _check_seed,
    "device": _check_device,
    "hook_budget": _check_hook_budget,
    "strategy": _check_strategy,
    "resume": _check_resume,
    "load_from": _check_load_from,
}
