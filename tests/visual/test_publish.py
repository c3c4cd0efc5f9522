"""Pictures go into the work directory and into the events."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from hookline.engine import BaseHook
from hookline.visual import publish
from tests.helpers import make_runner


class Listener:
    def __init__(self):
        self.records = []

    def write(self, record):
        self.records.append(record)


def test_a_picture_is_saved_and_recorded_with_its_step(tmp_path):
    runner, listener, figure = make_runner(tmp_path, BaseHook()), Listener(), Figure()
    runner.events.listeners.append(listener)
    runner.iter = 12
    publish(runner, runner.hook("BaseHook"), figure, "features.0")
    assert (tmp_path / "visualizations/BaseHook/features.0/step_000012.png").read_bytes().startswith(b"\x89PNG")
    (record,) = listener.records
    assert (record.kind, record.name, record.value, record.iter) == ("figure", "BaseHook/features.0", figure, 12)


@pytest.mark.parametrize("name", ["../../up", "..", "/etc", "a/../../b", "C:\\x", ".hidden"])
def test_no_name_of_a_hook_or_layer_leads_out_of_the_folder(tmp_path, name):
    hook = BaseHook()
    hook.name = name
    work_dir = tmp_path / "work"
    publish(make_runner(work_dir, hook), hook, Figure(), name)
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.relative_to(work_dir / "visualizations").parts[-1] == "step_000000.png"
    assert len(file.relative_to(work_dir / "visualizations").parts) == 3


def test_a_picture_that_cannot_be_written_is_told_and_training_goes_on(tmp_path, caplog):
    (tmp_path / "visualizations").write_text("a file where the folder should be")
    runner = make_runner(tmp_path, BaseHook())
    publish(runner, runner.hook("BaseHook"), Figure())
    assert "BaseHook: cannot save a picture" in caplog.text
