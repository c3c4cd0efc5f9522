"""Neptune's offline records, read back as JSON lines."""

from __future__ import annotations

import json
import logging

import pytest

from tests.events.parts import PutEverything, image_run
from tests.problems import logged

pytest.importorskip("neptune", reason="neptune is not installed: pip install 'hookline[neptune]'")
pytestmark = pytest.mark.slow


def test_an_offline_record_can_be_read_and_the_end_of_the_service_is_reported(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="hookline"):
        image_run(tmp_path, {"type": "NeptuneLoggerHook", "interval": 5}, PutEverything())
    (records,) = (tmp_path / "neptune").rglob("data-1.log")
    done = [json.loads(line)["obj"] for line in records.read_text().splitlines()]
    losses = [
        value["step"]
        for each in done
        if each["path"] == ["train", "loss"]
        for value in each["values"]
    ]
    assert losses == [5, 10, 15, 20]
    assert ["config", "optimizer", "lr"] in [each["path"] for each in done]
    assert ["pictures", "ramp"] in [each["path"] for each in done]
    assert logged(caplog, "March 2026")
