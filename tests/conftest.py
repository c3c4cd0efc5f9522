"""For all tests: no deadlines on a busy machine, and no thread fights between parallel tests."""

from __future__ import annotations

import logging
import os

import pytest
import torch
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")
settings.register_profile("hookline", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.load_profile("hookline")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _logger_as_it_was():
    """A test may turn the package's logger down; the next one finds it as it was."""
    logger = logging.getLogger("hookline")
    level = logger.level
    yield
    logger.setLevel(level)
