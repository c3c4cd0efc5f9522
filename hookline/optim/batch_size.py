"""Search for the largest batch size that fits into memory."""

from __future__ import annotations

from collections.abc import Callable


def find_largest(fits: Callable[[int], bool], start: int, limit: int) -> dict[int, bool]:
    """Return the sizes that were tried, in order, and whether each fits.

    The size is doubled, or halved, until both a size that fits and one that does not are known.
    Then the interval between them is halved until it is at most an eighth of the larger one, since
    memory use differs a little from batch to batch.

    Args:
        fits: Tries a size.
        start: The first size.
        limit: The largest size to try.
    """
    tried: dict[int, bool] = {}
    size = min(start, limit)
    good, bad = 0, limit + 1
    while bad - good > max(1, bad // 8):
        tried[size] = fits(size)
        if tried[size]:
            good = size
        else:
            bad = size
        if good == limit or bad == 1:
            break
        if bad > limit:
            size = min(2 * good, limit)
        elif good == 0:
            size = bad // 2
        else:
            size = (good + bad) // 2
    return tried
