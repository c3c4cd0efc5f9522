from __future__ import annotations

from hookline.visual.schedules import range_figure, schedule_figure


def test_a_schedule_has_a_panel_for_each_quantity_and_a_line_for_each_group() -> None:
    curves = {"lr": {"body": [1, 2], "head": [3, 4]}, "momentum": {"body": [0.9, 0.8]}}
    figure = schedule_figure(curves, "a_b$")
    first, second = figure.axes
    assert [line.get_label() for line in first.lines] == ["body", "head"]
    assert list(first.lines[1].get_ydata()) == [3, 4]
    assert list(first.lines[1].get_xdata()) == [1, 2]  # as in the terminal
    assert [first.get_ylabel(), second.get_ylabel()] == ["lr", "momentum"]
    assert first.get_legend() is not None
    assert second.get_legend() is None
    assert second.get_xlabel() == "iteration"


def test_a_range_test_shows_both_curves_and_the_suggestion() -> None:
    figure = range_figure([0.1, 1.0], [2, 1], [2, 1.5], 0.3)
    (axes,) = figure.axes
    assert [list(line.get_ydata()) for line in axes.lines[:2]] == [[2, 1], [2, 1.5]]
    assert axes.lines[2].get_label() == "suggested: 3.00e-01"
    assert axes.get_xscale() == "log"
    assert len(range_figure([0.1, 1.0], [2, 1], [2, 1], None).axes[0].lines) == 2
