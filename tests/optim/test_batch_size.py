"""The search for the largest batch size that fits."""

from __future__ import annotations

import pytest

from hookline.optim.batch_size import find_largest


@pytest.mark.parametrize("start", [1, 7, 64, 500])
@pytest.mark.parametrize("largest", [1, 2, 37, 100, 255, 4096])
def test_the_largest_size_is_found_to_an_eighth(start: int, largest: int) -> None:
    tried = find_largest(lambda size: size <= largest, start, limit=4096)
    found = max(size for size, fits in tried.items() if fits)
    assert found <= largest
    assert largest - found <= max(1, largest // 7)
    assert len(tried) <= 20


def test_a_search_ends_at_the_limit() -> None:
    assert find_largest(lambda size: True, 8, limit=50) == {8: True, 16: True, 32: True, 50: True}


def test_a_search_ends_if_nothing_fits() -> None:
    assert find_largest(lambda size: False, 4, limit=50) == {4: False, 2: False, 1: False}
