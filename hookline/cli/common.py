"""What several commands need: options as overrides, and hooks whose mistakes have a place in the config."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hookline.config import Config, build
from hookline.engine.environment import pick_device
from hookline.errors import ConfigError, Problem, RegistrationError
from hookline.runner import Runner


def options(args: argparse.Namespace, *names: str) -> list[str]:
    """Options of the command line as overrides of the config, so that they are checked, kept and complained about like these."""
    given = {name: getattr(args, name) for name in names}
    return [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items() if value is not None]


def make_runner(config: Config) -> Runner:
    """The runner of a config; ConfigError, with its place, for whatever is wrong with it."""
    parts = build(config)
    _check_device(config)
    with registering(config):
        return Runner(**parts)


def _check_device(config: Config) -> None:
    device = pick_device(config.get("device") or "auto")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch's own tracebacks end in either
        raise ConfigError(config.locate(Problem(f"{device} cannot be used here: {_first_sentence(error)}", ("device",)))) from error


def _first_sentence(error: BaseException) -> str:
    return str(error).partition("\n")[0].partition(". ")[0]


@contextmanager
def registering(config: Config) -> Iterator[None]:
    """Hooks that cannot work (together) are a mistake in the `hooks` of the config."""
    try:
        yield
    except RegistrationError as error:
        raise ConfigError(config.locate(Problem(str(error), ("hooks",)))) from error
