"""The `visualizer` service."""

from __future__ import annotations

from typing import Any

from hookline.events import EventStorage


class Visualizer:
    """Records into a run's events, with the methods of TensorBoard's writer.

    Values are recorded at the current iteration of the run; `global_step` is accepted and ignored.
    """

    def __init__(self, events: EventStorage) -> None:
        self._events = events

    def add_scalar(self, tag: str, value: Any, global_step: int | None = None) -> None:
        self._events.put_scalar(tag, value, smoothing_hint=False)

    def add_image(self, tag: str, image: Any, global_step: int | None = None) -> None:
        self._events.put_image(tag, image)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None) -> None:
        self._events.put_figure(tag, figure)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None) -> None:
        self._events.put_histogram(tag, values)

    def add_text(self, tag: str, text: str, global_step: int | None = None) -> None:
        self._events.put_text(tag, text)
