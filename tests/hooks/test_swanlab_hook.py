"""SwanLab's offline runs."""

from __future__ import annotations

import logging

import pytest
import yaml

from tests.events.parts import PutEverything, image_run

pytest.importorskip("swanlab", reason="swanlab is not installed: pip install 'hookline[swanlab]'")
pytestmark = pytest.mark.slow


def test_an_offline_run_holds_records_pictures_and_the_config(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="hookline"):
        runner = image_run(
            tmp_path, {"type": "SwanLabHook", "interval": 5, "offline": True}, PutEverything()
        )
    (folder,) = (tmp_path / "swanlab").glob("run-*")
    assert runner.hook("SwanLabHook").run_id[:21] in folder.name
    (records,) = folder.glob("*.swanlab")
    assert b"train/loss" in records.read_bytes()
    assert list(folder.glob("media/image/*.png"))
    assert "optimizer" in yaml.safe_load((folder / "files" / "config.yaml").read_text())
    assert f"swanlab sync {folder}" in caplog.text
