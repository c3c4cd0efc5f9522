"""GradientFlowHook: gradients of all layers, and warnings of those that vanish or explode."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.errors import require_at_least
from hookline.hooks.bases.picture import NamedCanvases, PictureHook
from hookline.visual.bars import draw_gradient_bars, draw_gradient_history
from hookline.visual.gradients import (
    GradientFlow,
    LayerValues,
    measure_gradient_flow,
    sample_values,
)
from hookline.visual.histograms import draw_histograms

VANISHING = 1e-7
EXPLODING = 1e3
MAX_NAMED_LAYERS = 8  # in one warning
MAX_HISTORY = 128  # steps in the heat map; if there are more, every other one is removed
DETAILS_INTERVAL = 5  # bar charts per heat map and histograms


@HOOKS.register()
@dataclass
class GradientFlowHook(PictureHook):
    """Draw the gradients of each layer, and warn if gradients vanish or explode.

    The bars show the mean and the largest gradient. A gradient vanishes if its largest element is
    below 1e-7. It explodes if that is above 1e3 or not finite. Gradients are read before clipping;
    with gradient accumulation, the hook waits for the next optimizer step. A warning is repeated
    only if other layers are concerned. Every fifth picture comes with histograms of weights and
    gradients, and with heat maps over the training so far. For a sharded model, only the shard of
    the main rank is read.

    Args:
        frequency: Number of iterations between two pictures.

    Attributes:
        measured_at: Iteration of the last measurement.
        steps: Iterations in `history`.
        history: Mean gradient of each layer at each of `steps`.
        largest: Largest gradient of each layer at each of `steps`.

    Example:
        ```yaml
        hooks:
          - {type: GradientFlowHook, frequency: 100}
        ```
    """

    frequency: int = 100
    measured_at: int = state(-1)
    steps: list[int] = state([])
    history: dict[str, list[float]] = state({})
    largest: dict[str, list[float]] = state({})

    def __post_init__(self) -> None:
        require_at_least(self, 1, "frequency")
        self._warned_layers: set[str] = set()

    def should_trigger(self, step: int) -> bool:
        """Return whether a multiple of `frequency` was reached since the last measurement.

        Unlike `step % frequency` this also holds for an optimizer step after accumulation.
        """
        return step // self.frequency != self.measured_at // self.frequency

    def after_backward(self, runner: BaseRunner) -> None:
        self.measured_at = runner.iter
        flow = measure_gradient_flow(runner.model)
        if not flow:
            return
        affected = self._warn(runner, flow)
        self._remember(runner.iter, flow)
        if not self.has_room(runner):
            return
        is_detailed = runner.iter // self.frequency % DETAILS_INTERVAL == 0
        values = sample_values(runner.model) if is_detailed else {}
        compose = functools.partial(self._compose, flow, affected, runner.iter, values)
        self.paint(runner, compose, runner.iter)
        for name, (weights, gradients) in values.items():
            runner.events.put_histogram(f"weights/{name}", weights)
            runner.events.put_histogram(f"gradients/{name}", gradients)
        if is_detailed and len(self.steps) > 1:
            self._paint_history(runner)

    def after_train(self, runner: BaseRunner) -> None:
        if self.steps:
            self._paint_history(runner)

    def _compose(
        self, flow: GradientFlow, affected: set[str], step: int, values: LayerValues
    ) -> NamedCanvases:
        yield "", draw_gradient_bars(flow, f"gradient flow, step {step}", affected)
        if values:
            yield "histograms", draw_histograms(values, f"weights and gradients, step {step}")

    def _paint_history(self, runner: BaseRunner) -> None:
        if not self.has_room(runner):
            return
        steps = list(self.steps)
        means = {name: list(row) for name, row in self.history.items()}
        largest = {name: list(row) for name, row in self.largest.items()}

        def compose() -> NamedCanvases:
            title = "gradients over training"
            yield "history", draw_gradient_history(means, steps, title)
            title = "largest gradients over training"
            yield (
                "history_largest",
                draw_gradient_history(largest, steps, title, "largest |gradient|"),
            )

        self.paint(runner, compose)

    def _remember(self, step: int, flow: GradientFlow) -> None:
        means = {name: mean for name, (mean, _) in flow.items()}
        largest = {name: largest for name, (_, largest) in flow.items()}
        _append_column(self.history, means, len(self.steps))
        _append_column(self.largest, largest, len(self.steps))
        self.steps.append(step)
        if len(self.steps) > MAX_HISTORY:
            self.steps = self.steps[::2]
            self.history = {name: row[::2] for name, row in self.history.items()}
            self.largest = {name: row[::2] for name, row in self.largest.items()}

    def _warn(self, runner: BaseRunner, flow: GradientFlow) -> set[str]:
        """Log vanishing and exploding gradients, and return the layers that have them."""
        vanishing = []
        exploding = []
        for name, (_, largest) in flow.items():
            if largest < VANISHING:
                vanishing.append(name)
            elif not largest <= EXPLODING:  # also true for NaN
                exploding.append(name)
        affected = {*vanishing, *exploding}
        if affected and affected != self._warned_layers:
            findings = []
            if vanishing:
                findings.append(f"vanishing (< {VANISHING:g}) in {_list_names(vanishing)}")
            if exploding:
                findings.append(f"exploding (> {EXPLODING:g}) in {_list_names(exploding)}")
            runner.logger.warning(
                "%s: at iteration %d gradients are %s",
                self.name,
                runner.iter + 1,
                "; ".join(findings),
            )
        self._warned_layers = affected
        return affected


def _append_column(
    rows: dict[str, list[float]], column: dict[str, float], columns_before: int
) -> None:
    """Append a value to each row; fill the gaps of new and missing layers with NaN."""
    for name in column:
        rows.setdefault(name, [math.nan] * columns_before)
    for name, row in rows.items():
        row.append(column.get(name, math.nan))


def _list_names(names: list[str]) -> str:
    listed = ", ".join(names[:MAX_NAMED_LAYERS])
    if len(names) > MAX_NAMED_LAYERS:
        listed += f" and {len(names) - MAX_NAMED_LAYERS} more"
    return listed
