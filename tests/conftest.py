"""For all tests: no deadlines on a busy machine, and no thread fights between parallel tests."""

from __future__ import annotations

import logging
import os
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the processes that tests start, too: several run at a time

import pytest
import torch
from hypothesis import HealthCheck, settings

from hookline.engine import HOOKS

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


@pytest.fixture(autouse=True)
def _hooks_as_they_were():
    """A hook that a test registers is gone when it is over; built-in ones, which come with an import, stay."""
    known = dict(HOOKS._classes)
    yield
    for name, cls in list(HOOKS._classes.items()):
        if known.get(name) is not cls and not cls.__module__.startswith("hookline."):
            HOOKS._classes.pop(name)
            HOOKS._classes.update({name: known[name]} if name in known else {})


@pytest.fixture(autouse=True)
def _registries_of_other_frameworks_as_they_were():
    """What a document's code registers there is gone when its test is over, as it would be with its process."""
    yield
    for name in ("hookline.compat.mmengine.registry", "hookline.compat.mmcv.runner", "hookline.compat.mmcv.runner.hooks"):
        for registry in vars(sys.modules[name]).values() if name in sys.modules else ():
            entries = getattr(registry, "_module_dict", {})
            for key in [key for key, value in entries.items() if getattr(value, "__module__", "") in ("document", "snippet")]:
                del entries[key]


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory):
    """A real MLflow server, for all tests that talk to one: it takes long to start."""
    pytest.importorskip("mlflow")
    from tests.mlflow_server import Server

    server = Server(tmp_path_factory.mktemp("mlflow"))
    server.start()
    yield server
    server.stop()
