"""MemorySnapshotHook, without a GPU; torch's recorder needs one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from hookline.errors import ConfigError
from hookline.hooks import MemorySnapshotHook
from tests.helpers import make_runner


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_only_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "hookline"):
        make_runner(tmp_path, MemorySnapshotHook(interval=1)).train()
    assert any(record.args and record.args[0] == "MemorySnapshotHook" for record in caplog.records)
    assert not list(tmp_path.glob("*.pickle"))


def test_wrong_intervals_are_an_error() -> None:
    with pytest.raises(ConfigError):
        MemorySnapshotHook(interval=0)
