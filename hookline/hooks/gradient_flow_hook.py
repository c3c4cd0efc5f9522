"""How gradients get through the layers."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.visual.bars import gradient_picture, history_picture
from hookline.visual.gradients import Flow, Values, measure_flow, sample_values
from hookline.visual.histograms import histogram_picture
from hookline.visual.picture_hook import PictureHook, Pictures, at_least
from hookline.visual.publish import Place

VANISHING, EXPLODING = 1e-7, 1e3
MAX_NAMED = 8  # layers named in one warning
COLUMNS = 128  # moments kept for the heat map over training; of more, every other one goes
DETAILS = 5  # the heat map and histograms are drawn with every fifth bar chart, and at the end


@HOOKS.register()
@dataclass
class GradientFlowHook(PictureHook):
    """Draw the mean and the largest |gradient| of each layer every `frequency` iterations; name layers where it vanishes or explodes.

    With every fifth of these bar charts there are histograms of weights and gradients, and heat maps of mean and largest over
    the training so far; the last ones are drawn at the end. A gradient vanishes where its largest element is below 1e-7
    and explodes where that is above 1e3 or not finite; it is looked at before clipping, and where gradients are accumulated
    at the next step of the optimizer. The warning is repeated only when other layers are concerned. Of a sharded model it is
    the main process's part that is looked at.
    """

    frequency: int = 100
    looked: int = state(-1)  # the iteration that was looked at last
    steps: list[int] = state([])
    history: dict[str, list[float]] = state({})
    largest: dict[str, list[float]] = state({})

    def __post_init__(self) -> None:
        at_least(self, frequency=1)
        self._warned_of: set[str] = set()

    def should_trigger(self, step: int) -> bool:
        """Due from every `frequency`th iteration on until gradients are complete, which may be some iterations later."""
        return step // self.frequency != self.looked // self.frequency

    def after_backward(self, runner: BaseRunner) -> None:
        self.looked = runner.iter
        flow = measure_flow(runner.model)
        if not flow:
            return
        vanishing = [name for name, (_, largest) in flow.items() if largest < VANISHING]
        exploding = [name for name, (_, largest) in flow.items() if not largest <= EXPLODING]  # so that NaN counts
        self._warn(runner, vanishing, exploding)
        detailed = runner.iter // self.frequency % DETAILS == 0
        self._remember(runner.iter, flow)
        if self.has_room(runner):
            values = sample_values(runner.model) if detailed else {}
            self.paint(runner, functools.partial(self._compose, flow, {*vanishing, *exploding}, runner.iter, values))
            self._record(runner, values)
            if detailed and len(self.steps) > 1:
                self._paint_history(runner)

    def after_train(self, runner: BaseRunner) -> None:
        if self.steps:
            self._paint_history(runner)

    def _compose(self, flow: Flow, marked: set[str], step: int, values: Values) -> Pictures:
        yield "", gradient_picture(flow, f"gradient flow, step {step}", marked)
        if values:
            yield "histograms", histogram_picture(values, f"weights and gradients, step {step}")

    def _paint_history(self, runner: BaseRunner) -> None:
        if not self.has_room(runner):
            return
        steps = list(self.steps)
        means, largest = ({name: list(row) for name, row in rows.items()} for rows in (self.history, self.largest))

        def compose() -> Pictures:
            yield "history", history_picture(means, steps, "gradients over training")
            yield "history_largest", history_picture(largest, steps, "largest gradients over training", "largest |gradient|")

        self.paint(runner, compose)

    def _record(self, runner: BaseRunner, values: Values) -> None:
        """Histograms for trackers, which draw them themselves."""
        events = Place(runner, self).events
        for name, (weights, gradients) in values.items():
            events.put_histogram(f"weights/{name}", weights)
            events.put_histogram(f"gradients/{name}", gradients)

    def _remember(self, step: int, flow: Flow) -> None:
        for which, rows in enumerate((self.history, self.largest)):
            for name in flow:
                rows.setdefault(name, [float("nan")] * len(self.steps))
            for name, row in rows.items():
                row.append(flow[name][which] if name in flow else float("nan"))
        self.steps.append(step)
        if len(self.steps) > COLUMNS:
            self.steps = self.steps[::2]
            self.history, self.largest = ({name: row[::2] for name, row in rows.items()} for rows in (self.history, self.largest))

    def _warn(self, runner: BaseRunner, vanishing: list[str], exploding: list[str]) -> None:
        concerned = {*vanishing, *exploding}
        if concerned and concerned != self._warned_of:
            found = [
                f"{kind} in {_listed(names)}"
                for kind, names in ((f"vanishing (< {VANISHING:g})", vanishing), (f"exploding (> {EXPLODING:g})", exploding))
                if names
            ]
            runner.logger.warning("%s: at iteration %d gradients are %s", self.name, runner.iter + 1, "; ".join(found))
        self._warned_of = concerned


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
