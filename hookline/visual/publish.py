"""Where pictures go."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hookline.engine import BaseHook, BaseRunner
from hookline.events import EventStorage
from hookline.events.portable import to_png

FOLDER = "visualizations"


@dataclass
class Moment:
    """Where in the run a picture belongs, which is behind by the time that it is drawn."""

    iter: int
    epoch: int


class Place:
    """Where the pictures of a hook go, and the moment that they are of: the iterations counted so far, and `done` more."""

    def __init__(self, runner: BaseRunner, hook: BaseHook, folder: str | Path | None = None, save: bool = True, done: int = 0) -> None:
        self.moment = Moment(runner.iter + done, runner.epoch)
        self._hook = hook.name
        self._folder = Path(folder) if folder is not None else runner.work_dir / FOLDER / file_name(hook.name)
        self._save = save
        self.events = EventStorage(self.moment)
        self.events.listeners = runner.events.listeners

    def publish(self, pixels: np.ndarray, name: str = "") -> None:
        """Save `<folder>/<name>/step_<n>.png` and put the picture into the events as `<hook>/<name>`."""
        self.events.put_image(f"{self._hook}/{name}" if name else self._hook, pixels)
        if self._save:
            folder = self._folder / file_name(name) if name else self._folder
            path = folder / f"step_{self.moment.iter:06d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(to_png(pixels))


def open_window(pixels: np.ndarray, title: str) -> None:
    """Show pixels in the system's viewer of images."""
    from PIL import Image, ImageShow

    if not ImageShow.show(Image.fromarray(pixels), title):
        raise OSError("no viewer of images was found, so no window can be opened")


def why_no_window(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str | None:
    """Why a window cannot be opened; None where it can."""
    if platform.startswith(("win", "darwin")) or environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return None
    return "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)"


def file_name(text: str) -> str:
    """A name for a file or folder that stays where it is put, whatever a hook or layer is called."""
    return re.sub(r"[^\w.\-]", "_", text).lstrip(".") or "_"
