"""Find the hook and the site of a stack frame, for notes on errors and hang reports.

Only this module reads code objects: nothing else in a traceback identifies a hook.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from traceback import walk_tb
from types import CodeType
from typing import Any

from hookline.errors import add_note


class HookMethods:
    """The methods of a runner's hooks, by code object."""

    def __init__(self) -> None:
        self._methods: dict[CodeType, tuple[list[str], str]] = {}

    def clear(self) -> None:
        """Forget all methods."""
        self._methods = {}

    def add(self, method: Callable[..., Any], hook: str, site: str) -> None:
        """Remember that a method belongs to a hook and runs at a site."""
        function = inspect.unwrap(getattr(method, "__func__", method))
        if inspect.isfunction(function):
            names, _ = self._methods.setdefault(function.__code__, ([], site))
            names.append(hook)

    def owner(self, code: CodeType) -> tuple[str, str] | None:
        """Return the hook and site of a code object; `A or B` if hooks share the method."""
        if code not in self._methods:
            return None
        names, site = self._methods[code]
        return " or ".join(names), site

    def owner_at(self, file: str, line: int) -> tuple[str, str] | None:
        """Return the hook and the site of the innermost method that has a line of a file."""
        spans = []
        for code in self._methods:
            lines = [number for _, _, number in code.co_lines() if number is not None]
            if code.co_filename == file and lines and min(lines) <= line <= max(lines):
                spans.append((max(lines) - min(lines), code))
        if not spans:
            return None
        _, innermost = min(spans, key=lambda span: span[0])
        return self.owner(innermost)

    def annotate(self, error: BaseException, when: str) -> None:
        """Add a note to an error: the innermost hook, its site, and the position in the run."""
        where = None
        for frame, _ in walk_tb(error.__traceback__):
            where = self.owner(frame.f_code) or where
        if where is not None:
            hook, site = where
            note = f"hookline: raised in {hook} at {site}"
            add_note(error, f"{note} ({when})" if when else note)
        elif when:
            add_note(error, f"hookline: raised in {when}")
