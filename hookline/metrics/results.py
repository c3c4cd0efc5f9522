"""The results of an evaluation, with one lookup for all names of a metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from hookline.errors import HooklineError, Suggestion, suggest
from hookline.secrets import mask_text


class UnknownMetric(HooklineError, KeyError):
    """No metric has this name; `suggestion` holds the nearest one."""

    __str__ = Exception.__str__  # KeyError would print the repr of the message.


class Metrics(MutableMapping[str, float]):
    """Metrics by name, where several spellings of a name find the same metric.

    A prefix `val_` or `val/` is optional, `/` and `_` are the same, and `acc` is short for
    `accuracy`: `accuracy`, `val_accuracy` and `val/accuracy` are one metric.

    Lookups (`[]`, `in`, `get`, `pop`, `del`) accept every spelling and prefer the exact one.
    Assignment uses the name as given, with secrets masked, and iteration, `keys()` and `len()`
    show these names.

    Args:
        values: The metrics to begin with.
    """

    def __init__(self, values: Mapping[str, float] | Iterable[tuple[str, float]] = ()) -> None:
        self._values: dict[str, float] = {}
        self.update(values)

    def __getitem__(self, name: str) -> float:
        return self._values[self._key(name)]

    def __setitem__(self, name: str, value: float) -> None:
        self._values[mask_text(name)] = value

    def __delitem__(self, name: str) -> None:
        del self._values[self._key(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_name(name, self._values) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Metrics({self._values})"

    def _key(self, name: str) -> str:
        found = find_name(name, self._values)
        if found is None:
            nearest = suggest(name, self._values).nearest
            suggestion = Suggestion(nearest, tuple(self._values))
            message = f"there is no metric {name!r}"
            raise UnknownMetric(message, parameter=name, suggestion=suggestion)
        return found


def find_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` is a spelling of, or None."""
    names = list(known)
    if name in names:
        return name
    spellings = (canonical_name(name), canonical_name(mask_text(name)))
    for other in names:
        if canonical_name(other) in spellings:
            return other
    return None


def choose_metric(wanted: str, measured: Iterable[str], default: str | None = None) -> str | None:
    """Return the metric to use, or None if it is not measured.

    `auto`, and a default that is not measured, stand for the first metric.
    """
    names = list(measured)
    if find_name(wanted, names) is not None:
        return mask_text(wanted)
    if wanted in ("auto", default) and names:
        return names[0]
    return None


def canonical_name(name: str) -> str:
    """Return the one spelling that stands for all spellings of a metric's name."""
    bare = name.replace("/", "_").removeprefix("val_")
    return "accuracy" if bare == "acc" else bare
