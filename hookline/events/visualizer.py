"""The `visualizer` service."""

from __future__ import annotations

from typing import Any

from hookline.events.storage import EventStorage


class Visualizer:
    """The events of a run behind the methods of TensorBoard's writer.

    Values are recorded at `global_step`, or at the current iteration of the run without it.
    """

    def __init__(self, events: EventStorage) -> None:
        self._events = events

    def add_scalar(self, tag: str, value: Any, global_step: int | None = None) -> None:
        self._events.put_scalar(tag, value, smoothing_hint=False, global_step=global_step)

    def add_image(self, tag: str, image: Any, global_step: int | None = None) -> None:
        self._events.put_image(tag, image, global_step=global_step)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None) -> None:
        self._events.put_figure(tag, figure, global_step=global_step)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None) -> None:
        self._events.put_histogram(tag, values, global_step=global_step)

    def add_text(self, tag: str, text: str, global_step: int | None = None) -> None:
        self._events.put_text(tag, text, global_step=global_step)
