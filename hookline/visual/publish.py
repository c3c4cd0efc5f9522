"""Publication of pictures: as PNG files, in the events, and in a window."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hookline.engine import BaseHook, BaseRunner
from hookline.events import Record
from hookline.events.portable import to_png
from hookline.files import replace_file
from hookline.progress import current_position
from hookline.secrets import mask_text

FOLDER = "visualizations"


class PicturePublisher:
    """Publishes the pictures of a hook at the step of its creation.

    Args:
        folder: Folder of the files; `visualizations/<hook>` in the work directory by default.
        save: Whether files are written.
        step: The step that the pictures show; the current iteration by default.
    """

    def __init__(
        self,
        runner: BaseRunner,
        hook: BaseHook,
        folder: str | Path | None = None,
        save: bool = True,
        step: int | None = None,
    ) -> None:
        if folder is None:
            folder = runner.work_dir / FOLDER / file_name(hook.name)
        self._hook = hook.name
        self._folder = Path(folder)
        self._save = save
        self._outbox = runner.events.outbox
        # Taken here: the run has continued by the time the picture is drawn.
        self._iter, self._epoch = current_position(runner)
        if step is not None:
            self._iter = step
        self._time = time.time()

    def publish(self, pixels: np.ndarray, name: str = "") -> None:
        """Save `<folder>/<name>/step_<n>.png`, and record the image as `<hook>/<name>`."""
        folder = self._folder
        record_name = self._hook
        if name:
            folder = folder / file_name(name)
            record_name = f"{self._hook}/{name}"
        position = self._iter, self._epoch, self._time
        record = Record("image", record_name, pixels, *position, owner=self._hook)
        self._outbox.put_record(record)
        if self._save:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"step_{self._iter:06d}.png"
            replace_file(path, to_png(pixels))


def open_window(pixels: np.ndarray, title: str) -> None:
    """Show an image in the image viewer of the system."""
    from PIL import Image, ImageShow

    if not ImageShow.show(Image.fromarray(pixels), title):
        raise OSError("cannot open a window: the system has no image viewer")


def has_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Return whether there is a display that a window can be opened on."""
    if platform.startswith(("win", "darwin")):
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def file_name(text: str) -> str:
    """Return a safe name for a file or folder; it never leads to another folder.

    Secrets in it are masked.
    """
    return re.sub(r"[^\w.\-]", "_", mask_text(text)).lstrip(".") or "_"
