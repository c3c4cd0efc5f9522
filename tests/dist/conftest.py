"""For tests of several processes."""

from __future__ import annotations

import pytest

from tests.dist.processes import Job


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    yield
    Job.end_all()
