"""Pictures go into the work directory and into the events, with the moment that they are of."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageShow

from hookline.engine import BaseHook
from hookline.visual.publish import Place, open_window, why_no_window
from tests.helpers import make_runner

PIXELS = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


class Listener:
    def __init__(self):
        self.records = []

    def write(self, record):
        self.records.append(record)


def test_a_picture_is_saved_and_recorded_with_the_step_that_it_is_of(tmp_path):
    runner, listener = make_runner(tmp_path, BaseHook()), Listener()
    runner.events.listeners.append(listener)
    runner.iter = 12
    place = Place(runner, runner.hook("BaseHook"))
    runner.iter = 15  # training has gone on
    place.publish(PIXELS, "features.0")
    saved = Image.open(tmp_path / "visualizations/BaseHook/features.0/step_000012.png")
    assert np.array_equal(np.asarray(saved), PIXELS)
    (record,) = listener.records
    assert (record.kind, record.name, record.iter) == ("image", "BaseHook/features.0", 12)
    assert np.array_equal(record.value, PIXELS)


def test_a_picture_may_go_to_another_folder_or_only_into_the_events(tmp_path):
    runner, listener = make_runner(tmp_path / "work", BaseHook()), Listener()
    runner.events.listeners.append(listener)
    hook = runner.hook("BaseHook")
    Place(runner, hook, folder=tmp_path / "elsewhere").publish(PIXELS, "val")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")] == ["elsewhere/val/step_000000.png"]
    Place(runner, hook, save=False).publish(PIXELS)
    assert not (tmp_path / "work").exists()
    assert len(listener.records) == 2


@pytest.mark.parametrize("name", ["../../up", "..", "/etc", "a/../../b", "C:\\x", ".hidden"])
def test_no_name_of_a_hook_or_layer_leads_out_of_the_folder(tmp_path, name):
    hook = BaseHook()
    hook.name = name
    work_dir = tmp_path / "work"
    Place(make_runner(work_dir, hook), hook).publish(PIXELS, name)
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.relative_to(work_dir / "visualizations").parts[-1] == "step_000000.png"
    assert len(file.relative_to(work_dir / "visualizations").parts) == 3


def test_a_window_needs_a_display():
    assert why_no_window({"DISPLAY": ":0"}, "linux") is None
    assert why_no_window({}, "darwin") is None
    assert "neither DISPLAY nor WAYLAND_DISPLAY is set" in why_no_window({}, "linux")


def test_a_window_shows_the_pixels_in_the_systems_viewer(monkeypatch):
    seen = []

    class Viewer(ImageShow.Viewer):
        def show(self, image, **options):
            seen.append((np.asarray(image), options["title"]))
            return True

    monkeypatch.setattr(ImageShow, "_viewers", [Viewer()])
    open_window(PIXELS, "a title")
    assert np.array_equal(seen[0][0], PIXELS)
    assert seen[0][1] == "a title"


def test_a_system_without_a_viewer_is_told(monkeypatch):
    monkeypatch.setattr(ImageShow, "_viewers", [])
    with pytest.raises(OSError, match="no viewer of images"):
        open_window(PIXELS, "a title")
