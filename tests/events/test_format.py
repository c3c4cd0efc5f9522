from __future__ import annotations

import pytest

from hookline.events.format import for_lines, format_bytes, format_scalars, format_value


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("eta", 3725.9, "1:02:05"),
        ("time", 0.0125, "12.50ms"),
        ("data_time", 1.0, "1000.00ms"),
        ("system/memory_mb", 123.6, "124MB"),
        ("loss", 0.0, "0.0000"),
        ("loss", 0.001, "0.0010"),
        ("loss", 0.000999, "9.990e-04"),
        ("loss", -0.000999, "-9.990e-04"),
        ("loss", 99999.0, "99999.0000"),
        ("loss", 100000.0, "1.000e+05"),
        ("loss", float("nan"), "nan"),
    ],
)
def test_a_value_is_formatted_by_its_name_and_size(name: str, value: float, text: str) -> None:
    assert format_value(name, value) == text


def test_the_loss_comes_first_and_times_and_memory_last() -> None:
    scalars = {"eta": 1, "system/memory_mb": 2, "time": 1, "lr": 1, "loss": 3, "data_time": 0}
    names = [part.split(" ")[0] for part in format_scalars(scalars).split("  ")]
    assert names == ["loss", "lr", "time", "data_time", "eta", "memory"]


def test_a_name_cannot_control_the_terminal() -> None:
    assert "\x1b" not in format_scalars({"\x1b[2J": 1.0})


def test_values_that_are_only_for_curves_are_left_out_of_lines() -> None:
    curves = ("data/wait", "memory/peak", "system/cpu", "throughput/now", "time/forward")
    kept = ("loss", "lr", "system/memory_mb", "val/loss", "datatime")
    assert list(for_lines(dict.fromkeys((*curves, *kept), 1.0))) == list(kept)


@pytest.mark.parametrize(("count", "shown"), [(4, 4), (5, 0)])
def test_a_few_learning_rates_of_groups_are_shown(count: int, shown: int) -> None:
    rates = {f"lr/{index}": 0.1 for index in range(count - 1)}
    assert len(for_lines({**rates, "lr_head/0": 0.1})) == shown


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (2.5e9, "2.5 GB"),
        (3e15, "3.0 PB"),
        (4e18, "4000.0 PB"),
    ],
)
def test_sizes_are_readable(size: float, text: str) -> None:
    assert format_bytes(size) == text
