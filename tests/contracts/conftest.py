"""Set-up of the contract tests: trackers write to disk, and nothing waits for the disk."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator

import pytest

from tests.waiting import LIMIT_S

OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "WANDB_CONSOLE": "off",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}


@pytest.fixture(autouse=True, scope="module")
def _offline_trackers() -> Iterator[None]:
    """Keep trackers from contacting a server, and wait for slow ones at the end of a run."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OFFLINE.items():
            patch.setenv(name, value)
        patch.setattr("hookline.events.delivery.PATIENCE", LIMIT_S)
        yield
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()  # it reads the environment only once


@pytest.fixture(autouse=True, scope="module")
def _without_waiting_for_the_disk() -> Iterator[None]:
    """Skip fsync: no file here has to survive a power cut, and there are thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _without_logs_below_errors() -> None:
    """Keep reports of failed tests readable; the root conftest puts the level back."""
    logging.getLogger("hookline").setLevel(logging.ERROR)
