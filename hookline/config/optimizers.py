"""The config section `optimizer`: one optimizer, or several by name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from hookline.config.components import as_component, check_component, with_default, with_title
from hookline.config.schema import DEFAULT_OPTIMIZER
from hookline.errors import ConfigError, KeyPath, Problem, suggest
from hookline.optim import OPTIMIZERS
from hookline.optim.build import EXTRA, check_extra, class_arguments, is_several
from hookline.signature import fits, type_problem


def complete_optimizer(value: Any) -> dict[str, Any]:
    """Return the config of an optimizer, or of several by name, with the default class."""
    if not is_several(value):
        return with_default(value, DEFAULT_OPTIMIZER)
    return {name: with_default(part, DEFAULT_OPTIMIZER) for name, part in value.items()}


def check_optimizer(value: Any) -> list[Problem]:
    """Return the problems of the section, as far as they can be found without a model."""
    if not is_several(value):
        return _check_one(value, ("optimizer",))
    problems: list[Problem] = []
    for name, part in value.items():
        path: KeyPath = ("optimizer", name)
        if isinstance(part, (str, dict)):
            problems += _check_one(part, path)
        else:
            problems.append(Problem("must be an optimizer, as the others are", path, value=part))
    return problems


def _check_one(value: Any, path: KeyPath) -> list[Problem]:
    given = as_component(value)
    own = class_arguments(given)
    problems = check_component(OPTIMIZERS, own, path, {"params"}, DEFAULT_OPTIMIZER)
    lr = given.get("lr")
    if lr is not None and not fits(lr, float):
        problems.append(type_problem("must be", lr, float, (*path, "lr"), parameter="lr"))
    elif lr is not None and not 0 < lr < math.inf:
        about: dict[str, Any] = {"parameter": "lr", "value": lr}
        problems.append(Problem("must be finite and above 0", (*path, "lr"), **about))
    problems = [_suggest_extra(problem) for problem in problems]
    if problems:
        return problems
    complete = with_default(own, DEFAULT_OPTIMIZER)
    cls = OPTIMIZERS.get(complete["type"])
    extra = [with_title(each, path, cls.__name__) for each in check_extra(given, cls)]
    return extra or _check_values(complete, path)


def _suggest_extra(problem: Problem) -> Problem:
    """Suggest a key for parameter groups if that is nearer than the class's own parameters."""
    if problem.parameter is None or problem.suggestion.nearest is not None:
        return problem
    nearest = suggest(problem.parameter, EXTRA)
    if nearest.nearest is None:
        return problem
    return replace(problem, suggestion=nearest)


def _check_values(optimizer: dict[str, Any], path: KeyPath) -> list[Problem]:
    """Build one of torch's optimizers for a dummy parameter, to have it check its values."""
    cls = OPTIMIZERS.get(optimizer["type"])
    if getattr(torch.optim, cls.__name__, None) is not cls:
        return []  # Another library's optimizer may reject a dummy parameter.
    try:
        OPTIMIZERS.build(optimizer, params=[torch.zeros(1, 1, requires_grad=True)])
    except ConfigError as error:
        return [with_title(problem, path, cls.__name__) for problem in error.problems]
    except RuntimeError:
        pass  # About the dtype or device of the dummy, which differ from the model's.
    return []
