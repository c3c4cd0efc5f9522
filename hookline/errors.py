"""Errors meant for users: where it is, what is wrong, what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

Path = tuple[str | int, ...]


class HooklineError(Exception):
    """Base of all errors that Hookline itself raises."""


class RegistrationError(HooklineError, ValueError):
    """A hook cannot be registered as it is; nothing was registered."""


class PeerFailed(HooklineError, RuntimeError):
    """Another process of the job failed, and this one cannot go on without it."""


class InvalidLoss(HooklineError, ArithmeticError):
    """The loss is not a finite number, or has gone out of hand, and nothing is left to be done about it."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a config: a message and, as far as known, its place."""

    message: str
    path: Path = ()
    file: str | None = None
    line: int | None = None
    where: str = ""  # what to call the place in the message, if not by its path: `hooks[2] EarlyStoppingHook`

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}: " if self.line is None else f"{self.file}:{self.line}: "
        where = self.where or dotted(self.path)
        return f"{place}{where}{': ' if where else ''}{self.message}"

    def below(self, *prefix: str | int) -> Problem:
        """The same problem, seen from further outside."""
        return replace(self, path=(*prefix, *self.path))


class ConfigError(HooklineError, ValueError):
    """Everything that is wrong with a config, found before anything was built."""

    def __init__(self, problems: Problem | str | Sequence[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def dotted(path: Path) -> str:
    """`("hooks", 2, "interval")` as `hooks[2].interval`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known name, or else what there is."""
    options = sorted({option for option in known if isinstance(option, str)})
    by_folded = {option.lower().replace("_", ""): option for option in options}
    folded = str(name).lower().replace("_", "")
    begin_so = [option for option in by_folded if option.startswith(folded) and len(folded) > 2]  # the rest was forgotten, not misspelt
    near = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.8) or begin_so or difflib.get_close_matches(folded, by_folded, n=1)
    if near:
        return f"; did you mean {by_folded[near[0]]!r}?"
    if not options:
        return ""
    shown = ", ".join(options[:12]) + (", …" if len(options) > 12 else "")
    return f"; known: {shown}"


def add_note(error: BaseException, note: str) -> None:
    """`error.add_note(note)`, which Python has only since 3.11."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        error.__notes__ = [*getattr(error, "__notes__", []), note]  # type: ignore[attr-defined]
