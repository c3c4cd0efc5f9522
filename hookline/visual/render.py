"""From a picture to finished pixels."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from hookline.errors import suggest
from hookline.visual import matplotlib_drawing
from hookline.visual.canvas import Picture, font
from hookline.visual.matplotlib_drawing import draw, receive, send


def render(picture: Picture, backend: str = "pillow") -> np.ndarray:
    """The picture with its texts, [height, width, 3]; matplotlib smooths text better, pillow is several times as fast."""
    return BACKENDS[backend](picture)


def check_backend(who: str, backend: str) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"{who}: unknown backend {backend!r}{suggest(backend, BACKENDS)}")


def _pillow(picture: Picture) -> np.ndarray:
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture.pixels)
    draw = ImageDraw.Draw(image)
    anchors = {"left": "lm", "center": "mm", "right": "rm"}
    for text in picture.texts:
        draw.text((text.x, text.y), text.text, fill=text.colour, font=font(text.size), anchor=anchors[text.align])
    return np.asarray(image)


def _matplotlib(picture: Picture) -> np.ndarray:
    texts = [dataclasses.asdict(text) for text in picture.texts]
    if "matplotlib.backends.backend_agg" not in sys.modules:
        drawn = _elsewhere.draw(picture.pixels, texts)
        if drawn is not None:
            return drawn
    return draw(picture.pixels, texts)


class _DrawingProcess:
    """A process that draws with matplotlib, started when it is first needed; it ends when this one does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._works = True

    def draw(self, pixels: np.ndarray, texts: list[dict[str, Any]]) -> np.ndarray | None:
        """The finished pixels; None if there can be no such process."""
        with self._lock:
            if not self._works:
                return None
            try:
                process = self._process = self._process or _start()
                send(process.stdin, pixels, texts)  # type: ignore[arg-type]
                received = receive(process.stdout)  # type: ignore[arg-type]
            except OSError:
                received = None
            self._works = received is not None
            return None if received is None else received[0]


def _start() -> subprocess.Popen[bytes]:
    # -I: our own folder must not be searched for modules. A session of its own: Ctrl-C is for the training.
    command = [sys.executable, "-I", str(Path(matplotlib_drawing.__file__))]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, start_new_session=True)


_elsewhere = _DrawingProcess()

BACKENDS = {"matplotlib": _matplotlib, "pillow": _pillow}
