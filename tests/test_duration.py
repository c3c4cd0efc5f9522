"""Durations as people write them."""

from __future__ import annotations

import pytest

from hookline.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15min", 900),
        ("1h 30min", 5400),
        ("1h30m", 5400),
        ("2 Hours", 7200),
        ("1.5 days", 129_600),
        (".5s", 0.5),
        (3, 3),
        (0.25, 0.25),
    ],
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "fast", "3", "3 fortnights", "1h later", "1..5s", True, None])
def test_any_other_text_is_rejected(text):
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize("text", [0, -1, "0s"])
def test_a_duration_is_longer_than_zero_seconds(text):
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (12.34, "12.3 s"), (245, "4 min 5 s"), (183_845, "2 days, 3:04:05")],
)
def test_durations_are_written(seconds, text):
    assert format_duration(seconds) == text
