"""Curves of learning rates and momenta over a run, and of the loss over learning rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

LOSS_COLOUR, SMOOTH_COLOUR, MARK_COLOUR = "#b8c4ce", "#0072b2", "#c1121f"


def schedule_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], title: str) -> Figure:
    """One panel for each kind of value (`lr`, `momentum`), one line in it for each parameter group."""
    figure = Figure(figsize=(8, 1 + 2.6 * len(curves)), dpi=100, layout="constrained")
    figure.suptitle(title, fontsize=10, parse_math=False)
    for number, (kind, lines) in enumerate(curves.items(), start=1):
        axes = figure.add_subplot(len(curves), 1, number)
        for label, values in lines.items():
            axes.plot(range(len(values)), values, label=label, linewidth=1.5)
        axes.set_ylabel(kind, fontsize=9)
        axes.grid(alpha=0.3)
        if len(lines) > 1:
            axes.legend(fontsize=8, frameon=False)
    axes.set_xlabel("iteration", fontsize=9)
    return figure


def range_figure(rates: Sequence[float], losses: Sequence[float], smoothed: Sequence[float], suggestion: float | None) -> Figure:
    """The loss over the learning rate on a logarithmic scale, with the suggested rate marked."""
    figure = Figure(figsize=(8, 4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(rates, losses, color=LOSS_COLOUR, linewidth=1, label="loss")
    axes.plot(rates, smoothed, color=SMOOTH_COLOUR, linewidth=2, label="smoothed")
    if suggestion is not None:
        axes.axvline(suggestion, color=MARK_COLOUR, linestyle="--", label=f"suggested: {suggestion:.2e}")
    axes.set_xscale("log")
    axes.set_xlabel("learning rate", fontsize=9)
    axes.set_ylabel("loss", fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
    return figure
