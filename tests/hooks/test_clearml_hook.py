"""ClearML's offline sessions, read back from their folder."""

from __future__ import annotations

import json
import logging
import re
import zipfile
from pathlib import Path

import pytest

from tests.events.parts import PutEverything, image_run

pytest.importorskip("clearml", reason="clearml is not installed: pip install 'hookline[clearml]'")
pytestmark = pytest.mark.slow


def test_without_an_account_the_run_is_an_offline_session_whose_path_is_logged(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setenv("CLEARML_CONFIG_FILE", str(tmp_path / "none.conf"))
    with caplog.at_level(logging.WARNING, logger="hookline"):
        runner = image_run(
            tmp_path / "run",
            {"type": "ClearMLHook", "interval": 5, "offline": True},
            PutEverything(),
        )
    (message,) = [text for text in caplog.messages if ".zip" in text]
    archive = Path(re.search(r"\S+\.zip", message)[0])
    with zipfile.ZipFile(archive) as session:
        lines = session.read("metrics.jsonl").decode().splitlines()
    events = [event for line in lines for event in json.loads(line)]
    losses = [
        event["iter"]
        for event in events
        if (event.get("metric"), event.get("variant")) == ("loss", "train")
    ]
    assert losses == [5, 10, 15, 20]
    assert runner.hook("ClearMLHook").task_id.startswith("offline")
