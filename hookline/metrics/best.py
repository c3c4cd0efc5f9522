"""Track the best results of a run: which metrics count, their directions and values."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hookline.errors import ConfigError, suggest
from hookline.metrics.agreed_directions import AgreedDirections
from hookline.metrics.direction import Direction
from hookline.metrics.results import choose_metric

DEFAULT_METRIC = "accuracy"


@dataclass(frozen=True)
class TrackedResult:
    """The result of a tracked metric in the last validation."""

    metric: str
    value: float
    direction: Direction
    is_best: bool  # so far


@dataclass
class TrackedMetric:
    """A metric whose best result a hook asked for.

    Args:
        hook: The hook's name.
        parameter: The hook's parameter that names the metric.
        metric: The metric; `auto` for the first one.
        direction: The direction that the user gave, if any.
        greater_keys: Parts of the names of metrics for which higher is better.
        less_keys: Parts of the names of metrics for which lower is better.
    """

    hook: str
    parameter: str
    metric: str = DEFAULT_METRIC
    direction: Direction | None = None
    greater_keys: Collection[str] = ()
    less_keys: Collection[str] = ()
    result: TrackedResult | None = None

    def given_direction(self, metric: str) -> Direction | None:
        """Return the direction that the user gave, as a rule or by keys."""
        if self.direction is not None:
            return self.direction
        if any(key in metric for key in self.greater_keys):
            return "greater"
        if any(key in metric for key in self.less_keys):
            return "less"
        return None


class BestTracker(Mapping[str, Mapping[str, Any]]):
    """The best results so far, updated once per validation.

    It maps each metric to a record with `value`, `epoch`, `iter` and `rule`.

    Args:
        metric_objects: Metrics by name; their `higher_is_better` counts if it is set.
        logger: For warnings.
    """

    def __init__(self, metric_objects: Mapping[str, Any], logger: logging.Logger) -> None:
        self.default_metric: str | None = None  # for hooks that name no metric
        self._votes: dict[str, list[bool]] = {}  # whether to save the best, by kind of hook
        self._directions = AgreedDirections(metric_objects, logger)
        self._logger = logger
        self._records: dict[str, dict[str, Any]] = {}
        self._tracked: list[TrackedMetric] = []
        self._required: list[tuple[str, str, str]] = []  # hook, parameter, metric
        self._warned_about_missing = False

    def __getitem__(self, metric: str) -> Mapping[str, Any]:
        return self._records[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"BestTracker({self._records})"

    def track(self, tracked: TrackedMetric) -> None:
        """Keep the best result of a metric for a hook. Hooks call this at the start of each run."""
        same = (tracked.hook, tracked.metric)
        self._tracked = [each for each in self._tracked if (each.hook, each.metric) != same]
        self._tracked.append(tracked)

    def require(self, hook: str, parameter: str, metric: str) -> None:
        """Declare that a hook depends on a metric; `check` raises if it will not be measured."""
        self._required.append((hook, parameter, metric))

    def vote_on_saving(self, kind: str, wanted: bool) -> None:
        """Record whether a hook wants the best weights to be saved, see `should_save`."""
        self._votes.setdefault(kind, []).append(wanted)

    @property
    def should_save(self) -> bool:
        """Whether the best weights should be saved: at least one hook of each kind wants it."""
        return all(any(votes) for votes in self._votes.values())

    def results(self, hook: str) -> list[TrackedResult]:
        """Return the results of a hook's metrics in the last validation."""
        found = []
        for tracked in self._tracked:
            if tracked.hook == hook and tracked.result is not None:
                found.append(tracked.result)
        return found

    def improved(self, hook: str) -> list[str]:
        """Return the metrics of a hook that the last validation improved."""
        return [result.metric for result in self.results(hook) if result.is_best]

    def update(self, metrics: Mapping[str, float], epoch: int, iteration: int) -> None:
        """Compare the results of a validation with the best ones so far."""
        has_improved: dict[tuple[str, Direction], bool] = {}
        for tracked in self._tracked:
            tracked.result = None
            metric = choose_metric(self._wanted(tracked), metrics, DEFAULT_METRIC)
            if metric is None:
                continue
            direction = self._direction(tracked, metric)
            value = metrics[metric]
            key = (metric, direction)
            if key not in has_improved:
                has_improved[key] = self._update_record(metric, direction, value, epoch, iteration)
            tracked.result = TrackedResult(metric, value, direction, has_improved[key])

    def usual_direction(self, metric: str) -> Direction | None:
        """Return the direction from the metric's `higher_is_better`, or else from its name."""
        return self._directions.usual(metric)

    def check(self, expected: Collection[str] | None, others_possible: bool) -> None:
        """Raise ConfigError if a tracked or required metric will not be measured.

        Args:
            expected: The names that a validation will give; None if they are not known.
            others_possible: Whether hooks may add metrics. Then only misspelled names are errors.
        """
        self._agree_on_directions(expected or ())
        logged: set[str] = set()
        # Sorted, so that the error names the hook that the user gave the wrong metric.
        for tracked in sorted(self._tracked, key=lambda each: each.metric == DEFAULT_METRIC):
            wanted = self._wanted(tracked)
            where = (tracked.hook, tracked.parameter)
            chosen = _check_expected(*where, wanted, expected, DEFAULT_METRIC, others_possible)
            if chosen is not None and expected is not None and chosen not in logged:
                logged.add(chosen)
                self._log_choice(tracked, chosen, expected)
        for hook, parameter, metric in self._required:
            _check_expected(hook, parameter, metric, expected, None, others_possible)

    def warn_about_missing(self, metrics: Mapping[str, float]) -> None:
        """Warn, after the first validation, about hooks whose metric it did not give."""
        if self._warned_about_missing:
            return
        self._warned_about_missing = True
        waiting = [(hook, metric) for hook, _, metric in self._required]
        waiting += [(each.hook, each.metric) for each in self._tracked]
        for hook, metric in waiting:
            if metric not in ("auto", DEFAULT_METRIC) and metric not in metrics:
                hint = suggest(metric, metrics)
                self._logger.warning("%s: the validation gave no metric %r%s", hook, metric, hint)

    def reset(self) -> None:
        """Forget the metrics of hooks, which declare them again when a run begins."""
        self._tracked = []
        self._required = []
        self._directions.reset()
        self._votes = {}
        self._warned_about_missing = False
        self.default_metric = None

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Return the records."""
        return {name: dict(record) for name, record in self._records.items()}

    def load_state_dict(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the records."""
        self._records = {name: dict(record) for name, record in state.items()}

    def _wanted(self, tracked: TrackedMetric) -> str:
        if tracked.metric == DEFAULT_METRIC and self.default_metric is not None:
            return self.default_metric
        return tracked.metric

    def _update_record(
        self, metric: str, direction: Direction, value: float, epoch: int, iteration: int
    ) -> bool:
        """Update the record of a metric if a value is better; return whether it was."""
        if not math.isfinite(value):
            return False
        known = self._records.get(metric)
        if known is not None and known["rule"] != direction:
            metric = f"{metric} ({direction})"
            known = self._records.get(metric)
        if known is not None and known["iter"] != iteration:
            gain = value - known["value"]
            if direction == "less":
                gain = -gain
            if gain <= 0:
                return False
        self._records[metric] = {
            "value": value,
            "epoch": epoch,
            "iter": iteration,
            "rule": direction,
        }
        return True

    def _direction(self, tracked: TrackedMetric, metric: str) -> Direction:
        given = tracked.given_direction(metric) or self._given_by_another(metric)
        return self._directions.choose(metric, given)

    def _given_by_another(self, metric: str) -> Direction | None:
        """Return the direction that the user gave to another hook with the same metric."""
        for tracked in self._tracked:
            direction = tracked.given_direction(metric)
            if direction is not None and self._wanted(tracked) == metric:
                return direction
        return None

    def _agree_on_directions(self, expected: Collection[str]) -> None:
        """Raise ConfigError if two hooks were given opposite directions for a metric."""
        for tracked in self._tracked:
            wanted = self._wanted(tracked)
            metric = choose_metric(wanted, expected, DEFAULT_METRIC) or wanted
            direction = tracked.given_direction(metric)
            if direction is not None:
                self._directions.agree(tracked.hook, metric, direction)

    def _log_choice(self, tracked: TrackedMetric, chosen: str, expected: Collection[str]) -> None:
        is_default = self._wanted(tracked) == DEFAULT_METRIC
        if is_default and list(expected) == [chosen]:
            return  # There was no choice to report.
        extreme = "highest" if self._direction(tracked, chosen) == "greater" else "lowest"
        missing = ""
        if not is_default and tracked.metric != "auto":
            missing = f"{tracked.metric} is not measured, "
        self._logger.info(
            "%s: %sthe best result is the one with the %s %s",
            tracked.hook, missing, extreme, chosen,
        )  # fmt: skip


def _check_expected(
    hook: str,
    parameter: str,
    wanted: str,
    expected: Collection[str] | None,
    default: str | None,
    others_possible: bool,
) -> str | None:
    """Return the metric used in place of one that is not measured; raise if there is none."""
    if expected is None:
        return None  # The names are known only after the validation.
    names = list(expected)
    chosen = choose_metric(wanted, names, default)
    is_element = any(wanted.startswith(f"{name}_") for name in names)
    if chosen == wanted or is_element:
        return None
    if chosen is not None:
        return chosen
    suggestion = suggest(wanted, names)
    if others_possible and suggestion.nearest is None:
        return None
    raise ConfigError(
        f"metric {wanted!r} is not measured, only {', '.join(names)}",
        path=(parameter,),
        component=hook,
        parameter=parameter,
        suggestion=replace(suggestion, known=()),
    )
