"""Settings and fixtures of all tests.

Tests run in parallel, often on a busy machine: torch uses one thread, and Hypothesis has no deadlines.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the processes that tests start

import pytest
import torch
from hypothesis import HealthCheck, settings
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from hookline.engine import HOOKS
from hookline.events.logs import UserLevel
from tests.clock import FakeClock
from tests.processes import kill_started
from tests.waiting import LIMIT_S

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

ORDINARY_USER = 65534  # nobody
FOREIGN_REGISTRIES = (
    "hookline.compat.mmengine.registry",
    "hookline.compat.mmcv.runner",
    "hookline.compat.mmcv.runner.hooks",
)

pytest_plugins = ["tests.plugins.order", "tests.plugins.skips", "tests.object_storage"]


@pytest.fixture(autouse=True)
def _restore_environment():
    """Restore the environment: `wandb.init` and `mlflow.set_tracking_uri` write addresses to it."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(autouse=True)
def _restore_log_level():
    """Restore the level of the package's logger after each test, also if it left a run unfinished."""
    logger = logging.getLogger("hookline")
    level = logger.level
    yield
    for handler in logging.getLogger().handlers:
        for user_level in [each for each in handler.filters if isinstance(each, UserLevel)]:
            handler.removeFilter(user_level)
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def _kill_started_processes():
    yield
    kill_started()


@pytest.fixture(autouse=True)
def _end_loader_workers():
    """End the worker processes of loaders that a test left behind.

    A forked process holds copies of all open files. The driver of the browser, for example, waits
    at its end until no other process holds the pipe to it.
    """
    yield
    if multiprocessing.active_children():
        # The garbage collector would take five seconds for each persistent worker.
        for each in gc.get_objects():
            if type(each) is _MultiProcessingDataLoaderIter:
                each._shutdown_workers()
    for child in multiprocessing.active_children():
        child.join(LIMIT_S)
        assert not child.is_alive(), f"the test left the process {child.name}"


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


@pytest.fixture
def unprivileged_folder() -> Iterator[Path]:
    """A folder of an ordinary user. Root becomes that user during the test: permissions bind others only."""
    folder = Path(tempfile.mkdtemp())
    if os.getuid() == 0:
        os.chown(folder, ORDINARY_USER, -1)
        os.seteuid(ORDINARY_USER)
    yield folder
    os.seteuid(os.getuid())
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory):
    """Start one real MLflow server for all tests that need one: it takes long to start."""
    pytest.importorskip("mlflow")
    from tests.mlflow_server import Server

    server = Server(tmp_path_factory.mktemp("mlflow"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def trackio_database(tmp_path, monkeypatch):
    """The file of Trackio's project `digits`, in a test directory."""
    pytest.importorskip("trackio")
    pytest.importorskip("trackio.media")  # all of it, so that all of it uses the test directory
    folder = tmp_path / "trackio"
    # The folder is read from the environment when the package is imported.
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "trackio":
            for attribute, path in (("TRACKIO_DIR", folder), ("MEDIA_DIR", folder / "media")):
                if hasattr(module, attribute):
                    monkeypatch.setattr(module, attribute, path)
    return folder / "digits.db"


@pytest.fixture
def wandb_environment(monkeypatch, tmp_path):
    """An environment in which W&B has no account and keeps runs offline."""
    wandb = pytest.importorskip("wandb")
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_CONSOLE", "off")
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    wandb.teardown()  # it reads the environment only once
    yield
    wandb.teardown()
