"""Figures of learning rates and momenta over a run, and of the loss over the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from hookline.visual.backends import drawable_text

LOSS_COLOR = "#b8c4ce"
SMOOTHED_COLOR = "#0072b2"
MARK_COLOR = "#c1121f"


def schedule_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], title: str) -> Figure:
    """Return a figure with a panel per quantity and a line per parameter group.

    Args:
        curves: Values by quantity (`lr`, `momentum`) and by parameter group.
    """
    figure = Figure(figsize=(8, 1 + 2.6 * len(curves)), dpi=100, layout="constrained")
    text, families = drawable_text(title)
    figure.suptitle(text, fontsize=10, fontfamily=families, parse_math=False)
    for number, (quantity, lines) in enumerate(curves.items(), start=1):
        axes = figure.add_subplot(len(curves), 1, number)
        _, families = drawable_text(" ".join(lines))
        for group, values in lines.items():
            label, _ = drawable_text(group)
            axes.plot(range(1, len(values) + 1), values, label=label, linewidth=1.5)
        axes.set_ylabel(quantity, fontsize=9)
        axes.grid(alpha=0.3)
        if len(lines) > 1:
            axes.legend(prop={"family": families, "size": 8}, frameon=False)
    axes.set_xlabel("iteration", fontsize=9)
    return figure


def range_figure(
    rates: Sequence[float],
    losses: Sequence[float],
    smoothed: Sequence[float],
    suggestion: float | None,
) -> Figure:
    """Return a figure of the loss over the learning rate, with the suggested rate marked."""
    figure = Figure(figsize=(8, 4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(rates, losses, color=LOSS_COLOR, linewidth=1, label="loss")
    axes.plot(rates, smoothed, color=SMOOTHED_COLOR, linewidth=2, label="smoothed")
    if suggestion is not None:
        label = f"suggested: {suggestion:.2e}"
        axes.axvline(suggestion, color=MARK_COLOR, linestyle="--", label=label)
    axes.set_xscale("log")
    axes.set_xlabel("learning rate", fontsize=9)
    axes.set_ylabel("loss", fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    return figure
