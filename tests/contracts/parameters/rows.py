"""Rows of the parameter tables: two values of a parameter, and an observation that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Config = dict[str, Any]
Observe = Callable[[Config, Path], Any]


@dataclass(frozen=True)
class Below:
    """A path below the folder of a run, for parameters that name a file or a folder."""

    name: str


@dataclass(frozen=True)
class Made:
    """An object that is made for each run, for parameters that take one with a state."""

    make: Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """A parameter and two values of it that lead to different observations.

    Args:
        parameter: The parameter's name.
        values: The two values.
        observe: Trains with a hook's config in an empty folder and returns plain data.
        given: Other parameters of the hook, the same in both trainings.
    """

    parameter: str
    values: tuple[Any, Any]
    observe: Observe
    given: Config = field(default_factory=dict)

    def config(self, hook: str, value: Any, folder: Path) -> Config:
        """Return the config of the hook with one of the values."""
        return place_below(folder, {"type": hook, **self.given, self.parameter: value})


def place_below(folder: Path, config: Config) -> Config:
    """Return a config with the paths and objects that its run needs."""
    placed = {}
    for name, value in config.items():
        if isinstance(value, Below):
            placed[name] = str(folder / value.name)
        elif isinstance(value, Made):
            placed[name] = value.make()
        else:
            placed[name] = value
    return placed


def rows(
    observe: Observe, given: Mapping[str, Any] | None = None, /, **values: tuple[Any, Any]
) -> list[Row]:
    """Return a row for each parameter that is given with its two values."""
    table = []
    for parameter, pair in values.items():
        table.append(Row(parameter, pair, observe, dict(given or {})))
    return table


def problems_of(
    hook: str, table: Iterable[Row], folder: Path, defaults: Mapping[str, Any] | None = None
) -> list[str]:
    """List the parameters of a hook whose two values lead to the same observation.

    The first value's training is repeated: an observation that differs between equal trainings
    would tell any two values apart, so it is listed as well. Rows with the same set-up share it.
    """
    observations = _Observations(hook, folder, defaults or {})
    problems = []
    for row in table:
        first, repeated = observations.twice(row)
        if first != repeated:
            problems.append(f"{row.parameter}: equal trainings differ: {first!r} and {repeated!r}")
        elif observations.once(row, row.values[1]) == first:
            one, other = row.values
            problems.append(f"{row.parameter}: {one!r} and {other!r} both lead to {first!r}")
    return problems


class _Observations:
    """Observations of one hook, each in an own folder."""

    def __init__(self, hook: str, folder: Path, defaults: Mapping[str, Any]) -> None:
        self.hook = hook
        self.folder = folder
        self.defaults = defaults
        self.count = 0
        self.known: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def once(self, row: Row, value: Any) -> Any:
        self.count += 1
        folder = self.folder / str(self.count) / "run"
        folder.mkdir(parents=True)
        return row.observe(row.config(self.hook, value, folder), folder)

    def twice(self, row: Row) -> tuple[Any, Any]:
        """Return two observations of the row's first value."""
        value = row.values[0]
        settings = {**self.defaults, **row.given, row.parameter: value}
        key = (row.observe, *sorted((name, repr(each)) for name, each in settings.items()))
        if key not in self.known:
            self.known[key] = (self.once(row, value), self.once(row, value))
        return self.known[key]
