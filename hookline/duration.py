"""Durations as people write them."""

from __future__ import annotations

import re

_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}


def parse_duration(text: str | float) -> float:
    """Seconds from `"15min"`, `"1h 30min"`, `"90s"` or a number of seconds."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        seconds = float(text)
    else:
        parts = re.findall(r"([\d.]+)\s*([a-z]+)", str(text).lower())
        rest = re.sub(r"[\d.]+\s*[a-z]+", "", str(text).lower()).strip()
        units = [unit if unit in _SECONDS else unit.removesuffix("s") for _, unit in parts]
        if not parts or rest or not all(unit in _SECONDS for unit in units):
            raise ValueError(f"cannot read {text!r} as a duration; write '90s', '15min', '1h 30min' or a number of seconds")
        seconds = sum(float(number) * _SECONDS[unit] for (number, _), unit in zip(parts, units, strict=True))
    if seconds <= 0:
        raise ValueError(f"a duration must be longer than nothing, got {text!r}")
    return seconds
