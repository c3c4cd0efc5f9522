"""For all tests: no deadlines on a busy machine, and no thread fights between parallel tests."""

from __future__ import annotations

import logging
import os
import tempfile

import pytest
import torch
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("TRACKIO_DIR", os.path.join(tempfile.gettempdir(), "hookline-tests-trackio"))  # it is read when that is imported
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
