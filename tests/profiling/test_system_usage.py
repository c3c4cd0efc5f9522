"""System usage: rates from byte counters, and the names of scalars."""

from __future__ import annotations

from types import SimpleNamespace

from hookline.profiling.system_usage import Rates, read_all


def test_rates_are_differences_over_time(clock):
    counters = SimpleNamespace(bytes_sent=7_000_000)
    rates = Rates(lambda: SimpleNamespace(**vars(counters)), {"sent": "bytes_sent"}, clock)
    counters.bytes_sent += 3_000_000
    clock.advance(2.0)
    assert rates() == {"sent": 1.5}
    clock.advance(1.0)
    assert rates() == {"sent": 0.0}
    assert rates() == {}  # No time has passed.


def test_the_names_of_all_scalars_begin_with_system():
    assert read_all([lambda: {"a": 1.0}, lambda: {"b": 2.0}]) == {"system/a": 1.0, "system/b": 2.0}
