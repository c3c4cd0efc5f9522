"""Fixtures of the command line tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.helpers import STARTED


@pytest.fixture(autouse=True)
def _kill_started_processes() -> Iterator[None]:
    yield
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()
    STARTED.clear()
