"""What hooks that draw have in common."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Iterable
from typing import Any

from hookline.engine import BaseHook, BaseRunner
from hookline.errors import suggest
from hookline.visual.canvas import Picture
from hookline.visual.painter import painter_of
from hookline.visual.publish import Place, open_window
from hookline.visual.render import render

Pictures = Iterable[tuple[str, Picture]]  # with their names, "" for a hook that has only one


class PictureHook(BaseHook):
    """Draws in the background: `paint` takes a function that composes pictures out of copies, and returns at once."""

    ranks = "main"
    backend: str = "pillow"
    save: bool = True
    show: bool = False
    out_dir: str | None = None

    _told: bool = False

    def after_run(self, runner: BaseRunner) -> None:
        painter_of(runner).finish()  # here, while all writers are still open

    def on_exception(self, runner: BaseRunner) -> None:
        in_a_hurry = isinstance(runner.exception, (SystemExit, KeyboardInterrupt))
        painter_of(runner).finish(discard=in_a_hurry)

    def cleanup(self, runner: BaseRunner) -> None:
        painter_of(runner).finish()

    def _has_room(self, runner: BaseRunner) -> bool:
        """Whether it is worth copying anything; asked before `_paint`."""
        return painter_of(runner).has_room(self.name)

    def _paint(self, runner: BaseRunner, compose: Callable[[], Pictures]) -> None:
        place = Place(runner, self, self.out_dir, self.save)

        def job() -> None:
            for name, picture in compose():
                pixels = render(picture, self.backend)
                place.publish(pixels, name)
                if self.show:
                    open_window(pixels, f"{self.name} {name}".strip())

        painter_of(runner).submit(self.name, job)

    def _tell_once(self, runner: BaseRunner, message: str) -> None:
        if not self._told:
            self._told = True
            runner.logger.warning("%s: %s", self.name, message)


def at_least(hook: BaseHook, **limits: float) -> None:
    """ValueError for a parameter that is below its limit."""
    for name, least in limits.items():
        if getattr(hook, name) < least:
            raise ValueError(f"{type(hook).__name__}: {name} must be at least {least}, got {getattr(hook, name)}")


def matching(who: str, known: dict[str, Any], patterns: Collection[str]) -> dict[str, Any]:
    """The modules whose names match any pattern, in the model's order; a pattern that matches none is a mistake."""
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise ValueError(f"{who}: no layer is named {pattern!r}{suggest(pattern, known)}")
    return {name: module for name, module in known.items() if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
