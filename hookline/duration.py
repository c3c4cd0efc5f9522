"""Parse and format durations such as `15min` and `1h 30min`."""

from __future__ import annotations

import re
from datetime import timedelta

SECONDS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
}
PART = r"(\d+\.?\d*|\.\d+)\s*([a-z]+)"


def parse_duration(text: str | float) -> float:
    """Return the number of seconds in `15min`, `1h 30min`, `90s`, or a number of seconds.

    Raises:
        ValueError: If the text is not a duration, or not longer than 0 seconds.
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        seconds = float(text)
    else:
        seconds = _parse_text(str(text).lower())
    if seconds <= 0:
        raise ValueError(f"a duration must be longer than 0 seconds, got {text!r}")
    return seconds


def format_duration(seconds: float) -> str:
    """Return `12.3 s`, `4 min 5 s` or `2 days, 3:04:05`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return str(timedelta(seconds=int(seconds)))


def _parse_text(text: str) -> float:
    parts = re.findall(PART, text)
    rest = re.sub(PART, "", text).strip()
    units = [unit if unit in SECONDS else unit.removesuffix("s") for _, unit in parts]
    if not parts or rest or not SECONDS.keys() >= set(units):
        advice = "write '90s', '15min', '1h 30min' or a number of seconds"
        raise ValueError(f"cannot read {text!r} as a duration; {advice}")
    total = 0.0
    for (number, _), unit in zip(parts, units, strict=True):
        total += float(number) * SECONDS[unit]
    return total
