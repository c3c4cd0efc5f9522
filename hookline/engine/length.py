"""How long a run and its epochs are."""

from __future__ import annotations

from typing import Any


def check_length(max_epochs: int | None, max_iters: int | None) -> None:
    if max_epochs is not None and max_iters is not None:
        raise ValueError(f"the length of a run is max_epochs or max_iters, not both (got {max_epochs} and {max_iters})")
    for name, value in (("max_epochs", max_epochs), ("max_iters", max_iters)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


def both_lengths(epochs: int | None, iters: int | None, epoch_length: int | None, ahead: int = 0) -> tuple[int | None, int | None]:
    """The length in epochs and in iterations; one is given, the other follows if an epoch's length is known.

    A resumed run is `ahead` of its place by so many iterations, if it has come there with smaller batches than today's.
    """
    if epoch_length:
        if epochs is not None:
            return epochs, epochs * epoch_length + ahead
        if iters is not None:
            return -(-(iters - ahead) // epoch_length), iters
    return epochs, iters


def length_of(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # a loader over an iterable data set has __len__ and refuses to answer
        return None
