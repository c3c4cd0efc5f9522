"""Publication of pictures as files, in the events and in a window."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageShow

from hookline.engine import BaseHook
from hookline.visual.publish import PicturePublisher, has_display, open_window
from tests.helpers import make_runner

PIXELS = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


class Collector:
    def __init__(self):
        self.records = []

    def write(self, record):
        self.records.append(record)


def test_a_picture_is_saved_and_recorded_with_its_step(tmp_path):
    runner = make_runner(tmp_path, BaseHook())
    collector = Collector()
    runner.events.listeners.append(collector)
    runner.events.outbox.open()
    runner.iter = 12
    publisher = PicturePublisher(runner, runner.hook("BaseHook"))
    runner.iter = 15  # training has continued
    publisher.publish(PIXELS, "features.0")
    saved = Image.open(tmp_path / "visualizations/BaseHook/features.0/step_000012.png")
    assert np.array_equal(np.asarray(saved), PIXELS)
    (record,) = collector.records
    assert (record.kind, record.name, record.iter) == ("image", "BaseHook/features.0", 12)
    assert np.array_equal(record.value, PIXELS)


def test_a_picture_is_saved_in_another_folder_or_only_recorded(tmp_path):
    runner = make_runner(tmp_path / "work", BaseHook())
    collector = Collector()
    runner.events.listeners.append(collector)
    runner.events.outbox.open()
    hook = runner.hook("BaseHook")
    PicturePublisher(runner, hook, folder=tmp_path / "elsewhere").publish(PIXELS, "val")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")] == [
        "elsewhere/val/step_000000.png"
    ]
    PicturePublisher(runner, hook, save=False).publish(PIXELS)
    assert not (tmp_path / "work").exists()
    assert len(collector.records) == 2


def test_the_step_of_a_picture_can_be_given(tmp_path):
    runner = make_runner(tmp_path, BaseHook())
    PicturePublisher(runner, runner.hook("BaseHook"), step=7).publish(PIXELS)
    assert (tmp_path / "visualizations/BaseHook/step_000007.png").exists()


@pytest.mark.parametrize("name", ["../../up", "..", "/etc", "a/../../b", "C:\\x", ".hidden"])
def test_no_name_of_a_hook_or_layer_leads_out_of_the_folder(tmp_path, name):
    hook = BaseHook()
    hook.name = name
    work_dir = tmp_path / "work"
    PicturePublisher(make_runner(work_dir, hook), hook).publish(PIXELS, name)
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.relative_to(work_dir / "visualizations").parts[-1] == "step_000000.png"
    assert len(file.relative_to(work_dir / "visualizations").parts) == 3


def test_a_window_needs_a_display():
    assert has_display({"DISPLAY": ":0"}, "linux")
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert has_display({}, "darwin")
    assert not has_display({}, "linux")


def test_a_window_shows_the_pixels_in_the_image_viewer(monkeypatch):
    seen = []

    class Viewer(ImageShow.Viewer):
        def show(self, image, **options):
            seen.append((np.asarray(image), options["title"]))
            return True

    monkeypatch.setattr(ImageShow, "_viewers", [Viewer()])
    open_window(PIXELS, "a title")
    assert np.array_equal(seen[0][0], PIXELS)
    assert seen[0][1] == "a title"


def test_a_system_without_an_image_viewer_is_an_error(monkeypatch):
    monkeypatch.setattr(ImageShow, "_viewers", [])
    with pytest.raises(OSError, match="image viewer"):
        open_window(PIXELS, "a title")
