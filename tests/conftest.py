"""Settings and fixtures of all tests.

Tests run in parallel, often on a busy machine: torch uses one thread, and Hypothesis has no deadlines.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the processes that tests start

import pytest
import torch
from hypothesis import HealthCheck, settings

from hookline.engine import HOOKS
from tests.clock import FakeClock

os.environ.setdefault("MPLBACKEND", "Agg")
# Trackio reads its directory when it is imported.
os.environ.setdefault("TRACKIO_DIR", os.path.join(tempfile.gettempdir(), "hookline-tests-trackio"))
settings.register_profile(
    "hookline",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("hookline")
torch.set_num_threads(1)

FOREIGN_REGISTRIES = (
    "hookline.compat.mmengine.registry",
    "hookline.compat.mmcv.runner",
    "hookline.compat.mmcv.runner.hooks",
)

pytest_plugins = ["tests.plugins.order", "tests.plugins.skips"]


@pytest.fixture(autouse=True)
def _restore_log_level():
    """Restore the level of the package's logger after each test."""
    logger = logging.getLogger("hookline")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def _restore_hook_registry():
    """Remove the hooks that a test registered. Built-in hooks, registered by an import, stay."""
    known = dict(HOOKS._classes)
    yield
    for name, cls in list(HOOKS._classes.items()):
        if known.get(name) is not cls and not cls.__module__.startswith("hookline."):
            HOOKS._classes.pop(name)
            if name in known:
                HOOKS._classes[name] = known[name]


@pytest.fixture(autouse=True)
def _restore_foreign_registries():
    """Remove the classes that the code of a document registered with another framework."""
    yield
    for name in FOREIGN_REGISTRIES:
        if name not in sys.modules:
            continue
        for registry in vars(sys.modules[name]).values():
            entries = getattr(registry, "_module_dict", {})
            for key, value in list(entries.items()):
                if getattr(value, "__module__", "") in ("document", "snippet"):
                    del entries[key]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """A fake clock, which the training loop and its cost measurement read as well."""
    clock = FakeClock()
    for module in ("profiling.hook_costs", "engine.loop"):
        monkeypatch.setattr(f"hookline.{module}.perf_counter", clock)
    return clock


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory):
    """Start one real MLflow server for all tests that need one: it takes long to start."""
    pytest.importorskip("mlflow")
    from tests.mlflow_server import Server

    server = Server(tmp_path_factory.mktemp("mlflow"))
    server.start()
    yield server
    server.stop()
