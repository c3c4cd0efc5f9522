"""The table of docs/resume.md: which training data resume exactly, how, and what is announced.

The tests of exact resume run the loaders that each row names. The cells come from the positions
that Hookline finds for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hookline.data import share_loaders
from hookline.data.position import ComputedPosition, LoaderPosition, find_position
from hookline.data.protocols import has_state
from hookline.data.replay import ReplayPosition
from hookline.data.reread import RereadPosition
from hookline.data.stateful import StatePosition, StreamPosition
from tests.data.loaders import MAP_STYLE, OTHERS, STREAMS

HEAD = ("training data", "one rank", "several ranks", "how", "announced before training")
HOW = {
    ComputedPosition: "computed from seed, epoch and position",
    ReplayPosition: "indices drawn again, no data read",
    StatePosition: "its own state",
    StreamPosition: "its own state",
    RereadPosition: "read again from the beginning of the epoch",
}
ANNOUNCED = {
    StatePosition: "that its data set must draw no random numbers",
    RereadPosition: "the batches to read again",
}
SAME_NUMBER = "exact with the same number"
IF_REPEATED = "exact if it repeats its batches"


@dataclass(frozen=True)
class Row:
    """A row of the table: a name for loaders that the tests run.

    Args:
        title: The kind of training data.
        loaders: Names of loaders in `tests.data.loaders`.
        one_rank: The promise for one rank.
    """

    title: str
    loaders: tuple[str, ...]
    one_rank: str = "exact"


ROWS = (
    Row("`make_loader(dataset)`, every loader of a config", ("make_loader",)),
    Row(
        "`DataLoader(dataset)`, sequential or `shuffle=True`",
        ("sequential", "shuffle", "shuffle, drop_last", "shuffle, persistent_workers"),
        "exact, in torch's own order",
    ),
    Row("`DataLoader(dataset, shuffle=True, generator=g)`", ("shuffle, generator",)),
    Row(
        "`DataLoader` with any `sampler` or `batch_sampler`",
        (
            "RandomSampler, replacement",
            "RandomSampler, replacement, generator",
            "WeightedRandomSampler",
            "WeightedRandomSampler, generator",
            "SubsetRandomSampler",
            "DistributedSampler",
            "list as sampler",
            "own sampler, shuffle buffer",
            "own sampler, own generators",
            "own sampler without length",
            "own batch sampler, buckets",
            "BatchSampler of RandomSampler",
            "batch_size=None",
        ),
    ),
    Row("`DataLoader` with a sampler that has `state_dict`", ("own sampler with state_dict",)),
    Row("a loader with `state_dict`", ("stateful loader without length",)),
    Row(
        "a loader that passes arguments to `state_dict` of its data set",
        ("stateful loader that passes a count to its stream",),
    ),
    Row(
        "an `IterableDataset` with `state_dict`, without workers",
        ("IterableDataset with state_dict", "make_loader, stream with state_dict"),
    ),
    Row("any other `IterableDataset`", ("IterableDataset",)),
    Row("a list of batches", ("list of batches",)),
    Row("any other iterable", ("iterable of batches",), IF_REPEATED),
    Row("a generator or another one-shot iterator", ("generator of batches",), IF_REPEATED),
)

# Of other libraries: the kind of position, and whether anything is announced. The tests in
# tests/compat_foreign run these loaders in an environment that has the libraries.
FOREIGN: dict[str, tuple[type, bool]] = {
    "torchdata `StatefulDataLoader`, map-style": (ReplayPosition, False),
    "torchdata `StatefulDataLoader`, stream, without workers": (StatePosition, False),
    "torchdata `StatefulDataLoader`, stream, with workers": (StatePosition, True),
    "Hugging Face `datasets`, stream, without workers": (StreamPosition, False),
    "Hugging Face `datasets`, shuffled stream or with workers": (RereadPosition, True),
    "litdata `StreamingDataLoader`": (StatePosition, True),
    "mosaicml-streaming `StreamingDataLoader`": (StatePosition, True),
    "webdataset": (RereadPosition, True),
}


def make_table() -> str:
    """Return the table in Markdown."""
    rows = [HEAD, ("---",) * len(HEAD)]
    rows += [_cells(row) for row in ROWS]
    for title, (kind, is_announced) in FOREIGN.items():
        announced = ANNOUNCED[kind] if is_announced else "–"
        rows.append((title, "exact", SAME_NUMBER, HOW[kind], announced))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def positions_of(row: Row) -> Iterator[tuple[Any, LoaderPosition]]:
    """Yield the loaders of a row, each with its position."""
    for name in row.loaders:
        if name in OTHERS:
            loader = OTHERS[name]()
        else:
            loader = {**MAP_STYLE, **STREAMS}[name](0)
        yield loader, find_position(loader)


def _cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row, which must be the same for all of its loaders."""
    found = {_describe(row, loader, position) for loader, position in positions_of(row)}
    assert len(found) == 1, f"{row.title}: the loaders differ: {found}"
    return (row.title, *found.pop())


def _describe(row: Row, loader: Any, position: LoaderPosition) -> tuple[str, ...]:
    kind = type(position)
    how = HOW[kind]
    announced = "–" if position.announcement is None else ANNOUNCED[kind]
    if kind is RereadPosition and position.announcement is None:
        how = "skipped"
    if kind is ReplayPosition and has_state(loader.sampler):
        how = HOW[StatePosition]
    several = row.one_rank if row.one_rank == IF_REPEATED else SAME_NUMBER
    if position.is_shared:
        several = "exact, also with another number"
    elif share_loaders(loader, 1, 2, training=True) is not loader:
        several = "exact, also with fewer; replaced by one of `make_loader`"
    return row.one_rank, several, how, announced
