"""Errors for users. Each has three parts: the location, the mistake and a suggestion."""

from __future__ import annotations

import difflib
import signal
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

KeyPath = tuple[str | int, ...]
MAX_VALUE_CHARACTERS = 300  # of a value in an error message
NO_VALUE: Any = type("NO_VALUE", (), {"__repr__": lambda self: "NO_VALUE"})()


@dataclass(frozen=True)
class Suggestion:
    """Advice on how to solve a problem. Prints as the end of an error message.

    Args:
        nearest: The known name that was probably meant.
        known: All known names; listed if none of them is near.
        advice: The next step for the user, as a sentence.
    """

    nearest: str | None = None
    known: tuple[str, ...] = ()
    advice: str = ""

    MAX_LISTED = 12

    def __bool__(self) -> bool:
        return bool(self.nearest or self.known or self.advice)

    def __str__(self) -> str:
        if self.nearest is not None:
            return f"; did you mean {self.nearest!r}?"
        if self.advice:
            return f"; {self.advice}"
        if not self.known:
            return ""
        more = ", …" if len(self.known) > self.MAX_LISTED else ""
        return f"; known: {', '.join(self.known[: self.MAX_LISTED])}{more}"


@dataclass(frozen=True)
class Problem:
    """One mistake, with its location in a config if it has one.

    Args:
        message: The mistake in words, without location, value and suggestion.
        path: Keys that lead to the value in a config, the parameter included.
        file: The config file.
        line: The line in that file.
        component: The hook, model or other class that rejects the value, or a section of a config.
        parameter: The parameter with the mistake.
        value: The rejected value; printed after the message.
        site: The site at which a hook ran into the problem.
        suggestion: Advice on how to solve the problem.
    """

    message: str
    path: KeyPath = ()
    file: str | None = None
    line: int | None = None
    component: str = ""
    parameter: str | None = None
    value: Any = NO_VALUE
    site: str | None = None
    suggestion: Suggestion = Suggestion()

    def __str__(self) -> str:
        got = "" if self.value is NO_VALUE else f", got {_short(_show(self.value))}"
        parts = [self._location(), self._subject(), f"{self.message}{got}{self.suggestion}"]
        return ": ".join(part for part in parts if part)

    def below(self, *prefix: str | int) -> Problem:
        """Return the same problem with a longer path: `prefix` comes before `path`."""
        return replace(self, path=(*prefix, *self.path))

    def _location(self) -> str:
        if self.file is None:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def _subject(self) -> str:
        """Return the component and its path, `hooks[2] EMAHook`, or the path of a value."""
        if not self.component:
            return dotted(self.path)
        inside = bool(self.path) and self.path[-1] == self.parameter
        owner = self.path[:-1] if inside else self.path
        where = dotted(owner)
        return self.component if where in ("", self.component) else f"{where} {self.component}"


class HooklineError(Exception):
    """Base of all errors that Hookline raises.

    Its `problems` describe the mistake in fields. The properties `path`, `file`, `line`,
    `component`, `parameter`, `value`, `site` and `suggestion` are those of the first problem.

    Args:
        problems: A message, one problem, or several.
        about: Fields of the problem, if a message is given.
    """

    def __init__(self, problems: str | Problem | Sequence[Problem] = "", **about: Any) -> None:
        if isinstance(problems, str):
            problems = Problem(problems, **about)
        self.problems = [problems] if isinstance(problems, Problem) else list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @property
    def path(self) -> KeyPath:
        return self.problems[0].path

    @property
    def file(self) -> str | None:
        return self.problems[0].file

    @property
    def line(self) -> int | None:
        return self.problems[0].line

    @property
    def component(self) -> str:
        return self.problems[0].component

    @property
    def parameter(self) -> str | None:
        return self.problems[0].parameter

    @property
    def value(self) -> Any:
        return self.problems[0].value

    @property
    def site(self) -> str | None:
        return self.problems[0].site

    @property
    def suggestion(self) -> Suggestion:
        return self.problems[0].suggestion


class RegistrationError(HooklineError, ValueError):
    """A hook cannot be registered; nothing was registered."""


class PeerFailed(HooklineError, RuntimeError):
    """Another process of the job failed, and this one cannot continue without it."""


class InvalidLoss(HooklineError, ArithmeticError):
    """The loss is not finite, or has diverged, and no recovery is left."""


class ConfigError(HooklineError, ValueError):
    """A config or an argument is wrong. Raised before training whenever that is possible."""


class Interrupted(SystemExit):
    """A signal ended the run, after its state was saved and all resources were released.

    The exit code is 128 plus the number of the signal.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum

    def __str__(self) -> str:
        return f"interrupted by {signal.Signals(self.signum).name}"


def require_at_least(owner: object, minimum: float, *names: str) -> None:
    """Raise ConfigError if one of an object's attributes is below a minimum."""
    for name in names:
        value = getattr(owner, name)
        if value < minimum:
            raise parameter_error(owner, name, f"must be at least {minimum}")


def parameter_error(owner: object, name: str, expected: str, **about: Any) -> ConfigError:
    """Return the error for an attribute that holds a wrong value, such as `must be at least 1`."""
    about = {"value": getattr(owner, name), **about}
    message = f"{name!r} {expected}"
    component = getattr(owner, "name", None) or type(owner).__name__
    return ConfigError(Problem(message, (name,), component=component, parameter=name, **about))


def require_choice(component: str, parameter: str, value: Any, choices: Iterable[str]) -> None:
    """Raise ConfigError if a value is not one of the choices."""
    options = list(choices)
    if value not in options:
        listed = ", ".join(repr(option) for option in options)
        problem = Problem(
            f"{parameter!r} must be one of {listed}",
            (parameter,),
            component=component,
            parameter=parameter,
            value=value,
            suggestion=Suggestion(suggest(str(value), options).nearest),
        )
        raise ConfigError(problem)


def dotted(path: KeyPath) -> str:
    """Write `("hooks", 2, "interval")` as `hooks[2].interval`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else str(part)
    return text


def suggest(name: str, known: Iterable[str]) -> Suggestion:
    """Find the known name that is nearest to a misspelled one."""
    options = sorted({option for option in known if isinstance(option, str)})
    by_folded = {_fold(option): option for option in options}
    folded = _fold(str(name)[:MAX_VALUE_CHARACTERS])  # A longer text is no misspelled name.
    near = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.8)
    if not near and len(folded) > 2:  # The user may have shortened the name.
        near = [option for option in by_folded if option.startswith(folded)]
    near = near or difflib.get_close_matches(folded, by_folded, n=1)
    return Suggestion(by_folded[near[0]] if near else None, tuple(options))


def format_exception(error: BaseException) -> str:
    """Return an exception in one line, with the line of code that raised it."""
    lines = f"{type(error).__name__}: {error}".splitlines()
    if isinstance(error, SyntaxError):
        return lines[0]
    frames = traceback.extract_tb(error.__traceback__)
    user_frames = [frame for frame in frames if "importlib" not in frame.filename]
    if len(user_frames) < 2:
        return lines[0]
    return f"{lines[0]} ({user_frames[-1].filename}:{user_frames[-1].lineno})"


def _show(value: Any) -> str:
    """Return a value in one line; an object whose `repr` is long or has no content by its class."""
    if type(value) is list:
        return f"[{', '.join(_show(each) for each in value)}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {_show(each)}' for key, each in value.items())}}}"
    text = repr(value)
    has_own_repr = any("__repr__" in vars(cls) for cls in type(value).__mro__[:-1])
    if "\n" in text or not has_own_repr:
        return f"{type(value).__name__}(…)"
    return text


def _short(text: str) -> str:
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return f"{text[:MAX_VALUE_CHARACTERS]}…"


def _fold(name: str) -> str:
    return name.lower().replace("_", "")


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an error, also in Python 3.10, which has no `add_note`."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        error.__notes__ = [*getattr(error, "__notes__", []), note]  # type: ignore[attr-defined]
