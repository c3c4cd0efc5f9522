"""Check errors by their fields instead of their words."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hookline.errors import ConfigError, HooklineError, Problem


@contextmanager
def raises_problem(
    kind: type[HooklineError] = ConfigError, **expected: Any
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error whose first problem has these fields; `nearest` is the suggested name."""
    with pytest.raises(kind) as caught:
        yield caught
    assert fields(caught.value.problems[0], *expected) == expected, str(caught.value)


def fields(problem: Problem, *names: str) -> dict[str, Any]:
    """Return fields of a problem by name; `nearest` and `advice` are those of its suggestion."""
    found = {}
    for name in names:
        owner = problem.suggestion if name in ("nearest", "advice") else problem
        found[name] = getattr(owner, name)
    return found


def logged(
    caplog: pytest.LogCaptureFixture, *words: str, level: str = "WARNING"
) -> list[logging.LogRecord]:
    """Return the log records of a level whose message has all these words."""
    return [
        record
        for record in caplog.records
        if record.levelname == level and all(word in record.getMessage() for word in words)
    ]
