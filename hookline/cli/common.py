"""Helpers that several commands share: overrides from options, and a runner from a config."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from hookline.batches import pick_device
from hookline.config import Config, build
from hookline.errors import ConfigError, Problem, RegistrationError
from hookline.runner import Runner


def option_overrides(**options: Any) -> list[str]:
    """Return options as overrides, so that they are checked and saved with the config."""
    overrides = []
    for name, value in options.items():
        if value is not None:
            overrides.append(f"{name}={json.dumps(value, ensure_ascii=False)}")
    return overrides


def make_runner(config: Config) -> Runner:
    """Build the runner of a config.

    Raises:
        ConfigError: With the location of each mistake in the config.
    """
    parts = build(config)
    _check_device(config)
    with locate_runner_errors(config):
        return Runner(**parts)


@contextmanager
def locate_runner_errors(config: Config) -> Iterator[None]:
    """Add their locations in the config to the errors of a Runner."""
    try:
        yield
    except RegistrationError as error:
        raise ConfigError(config.locate(Problem(str(error), ("hooks",)))) from error
    except ConfigError as error:
        problems = [each if each.file else config.locate(each) for each in error.problems]
        raise ConfigError(problems) from error


def _check_device(config: Config) -> None:
    device = pick_device(config.get("device") or "auto")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # Torch raises either, depending on the build.
        problem = Problem(f"{device} is not available: {_first_sentence(error)}", ("device",))
        raise ConfigError(config.locate(problem)) from error


def _first_sentence(error: BaseException) -> str:
    first_line = str(error).partition("\n")[0]
    return first_line.partition(". ")[0]
