"""The summary of a profile, in words."""

from __future__ import annotations

import pytest

from hookline.profiling.profile_summary import PhaseTimes, describe_phases, format_quantity

PHASES = {"data": 0.001, "forward": 0.004, "backward": 0.004, "optimizer": 0.001, "hooks": 0.0}


def test_the_largest_part_comes_first():
    text = describe_phases(
        PhaseTimes(80, {**PHASES, "backward": 0.008}, {"LoggerHook at after_train_iter": 0.0001}),
        2_000_000,
    )
    assert text.splitlines() == [
        "Profiled 80 iterations of 14.00 ms: backward 57% (8.00 ms), forward 29% (4.00 ms), data 7% (1.00 ms), "
        "optimizer 7% (1.00 ms), hooks 0% (0.0 µs).",
        "The longest phase is backward.",
        "The most expensive hook is LoggerHook at after_train_iter: 100.0 µs an iteration (0.7%).",
        "An iteration has 2 MFLOP, forward and backward: 143 MFLOP/s while profiled.",
    ]


@pytest.mark.parametrize(
    "phase, advice", [("data", "waits for data"), ("hooks", "Hooks take"), ("optimizer", "fused")]
)
def test_what_stands_out_gets_a_word(phase, advice):
    assert advice in describe_phases(PhaseTimes(1, {**PHASES, phase: 0.02}, {}), 0)
    assert advice not in describe_phases(PhaseTimes(1, PHASES, {}), 0)


def test_a_run_without_timings_is_reported_too():
    assert (
        describe_phases(PhaseTimes(0, dict.fromkeys(PHASES, 0.0), {}), 0)
        == "No whole iteration was profiled."
    )


def test_only_what_came_since_counts():
    before = PhaseTimes(10, {"forward": 1.0}, {"a": 0.5})
    spent = PhaseTimes(12, {"forward": 1.4}, {"a": 0.7, "b": 0.2}).since(before)
    assert spent.iterations == 2
    assert spent.phases == pytest.approx({"forward": 0.2})
    assert spent.hooks == pytest.approx({"a": 0.1, "b": 0.1})


@pytest.mark.parametrize(
    "value, text", [(3, "3 "), (1500, "1.5 k"), (2.5e9, "2.5 G"), (1e18, "1e+03 P")]
)
def test_large_numbers_have_prefixes(value, text):
    assert format_quantity(value) == text
