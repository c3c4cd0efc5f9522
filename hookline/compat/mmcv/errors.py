"""Errors that code written for MMCV can catch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hookline.errors import ConfigError

ADVICE = "install MMCV 1.x itself, see docs/from-mmcv.md"


class ParameterError(ConfigError, AssertionError):
    """A wrong parameter. MMCV checks most of them with `assert`, and some with ValueError."""


def require(condition: bool, owner: object, parameter: str, expected: str, value: Any) -> None:
    """Raise ParameterError unless a condition holds."""
    if not condition:
        raise ParameterError(
            f"{parameter!r} {expected}",
            component=type(owner).__name__,
            parameter=parameter,
            value=value,
        )


@contextmanager
def as_parameter_error() -> Iterator[None]:
    """Raise ParameterError in place of a ConfigError."""
    try:
        yield
    except ConfigError as error:
        raise ParameterError(error.problems) from None
