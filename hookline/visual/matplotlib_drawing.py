"""Pictures finished by matplotlib: `draw`, and as a script a process that does nothing else.

Importing matplotlib takes half a second, in which training would stand still if it happened in its process. As a script this file
imports nothing of Hookline, which would bring torch along.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np

DPI = 100
HEADER = struct.Struct("!III")  # height, width, bytes of the texts as JSON


def draw(pixels: np.ndarray, texts: list[dict[str, Any]]) -> np.ndarray:
    """Pixels [height, width, 3] with texts on them."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    height, width, _ = pixels.shape
    figure = Figure(figsize=((width + 0.01) / DPI, (height + 0.01) / DPI), dpi=DPI)  # it rounds down
    canvas = FigureCanvasAgg(figure)
    figure.figimage(pixels, origin="upper")
    for text in texts:
        colour = tuple(part / 255 for part in text["colour"])
        place = text["x"] / width, 1 - text["y"] / height
        points = text["size"] * 72 / DPI
        figure.text(*place, text["text"], parse_math=False, ha=text["align"], va="center", fontsize=points, color=colour)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()  # type: ignore[no-untyped-call]


def send(stream: BinaryIO, pixels: np.ndarray, texts: list[dict[str, Any]]) -> None:
    words = json.dumps(texts).encode()
    stream.write(HEADER.pack(pixels.shape[0], pixels.shape[1], len(words)))
    stream.write(words)
    stream.write(pixels.tobytes())
    stream.flush()


def receive(stream: BinaryIO) -> tuple[np.ndarray, list[dict[str, Any]]] | None:
    """What `send` has sent; None if nothing comes any more."""
    import numpy as np

    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    height, width, length = HEADER.unpack(header)
    texts = json.loads(stream.read(length))
    content = stream.read(height * width * 3)
    return np.frombuffer(content, dtype=np.uint8).reshape(height, width, 3), texts


def main() -> None:
    while (picture := receive(sys.stdin.buffer)) is not None:
        send(sys.stdout.buffer, draw(*picture), [])


if __name__ == "__main__":
    main()
