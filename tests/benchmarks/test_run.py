from __future__ import annotations

from benchmarks import run


def row(ratio: float, low: float, high: float) -> dict[str, float]:
    return {"ratio": ratio, "low": low, "high": high}


def test_new_ratios_are_compared_with_the_previous_ones() -> None:
    before = {"a": {"b": row(1.0, 0.9, 1.1), "us": 3.0}, "gone": row(1.0, 1.0, 1.0)}
    now = {"a": {"b": row(1.3, 1.2, 1.4), "us": 4.0}, "new": row(1.0, 1.0, 1.0)}
    (line,) = run.compare(before, now)
    assert line.split() == ["a", "b", "1.000", "→", "1.300", "CHANGED"]
    (line,) = run.compare(before["a"], before["a"])
    assert "CHANGED" not in line


def test_every_benchmark_has_a_script() -> None:
    scripts = [command[0] for command in run.BENCHMARKS.values()]
    assert [script for script in scripts if not (run.HERE / script).exists()] == []
