"""The directions of the metrics of a run, on which its hooks agree."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from hookline.errors import ConfigError, Suggestion
from hookline.metrics.direction import Direction, infer_direction


class AgreedDirections:
    """The direction of each metric: as a hook was given it, or else the usual one.

    Args:
        metric_objects: Metrics by name; their `higher_is_better` counts if it is set.
        logger: For warnings.
    """

    def __init__(self, metric_objects: Mapping[str, Any], logger: logging.Logger) -> None:
        self._metric_objects = metric_objects
        self._logger = logger
        self._agreed: dict[str, tuple[Direction, str]] = {}  # with the hook that was given it

    def agree(self, hook: str, metric: str, direction: Direction) -> None:
        """Set the direction that a hook was given; raise ConfigError if another has the opposite.

        The log warns of a direction that is not the usual one.
        """
        usual = self.usual(metric)
        if usual is not None and usual != direction and metric not in self._agreed:
            self._logger.warning(
                "%s: the rule for %r is %r, although %s values of it are usually better",
                hook, metric, direction, "lower" if usual == "less" else "higher",
            )  # fmt: skip
        earlier, other = self._agreed.setdefault(metric, (direction, hook))
        if earlier != direction:
            raise ConfigError(
                f"the rule for {metric!r} is {direction!r} here and {earlier!r} in {other}",
                path=("rule",),
                component=hook,
                parameter="rule",
                suggestion=Suggestion(advice="use the same rule in both"),
            )

    def choose(self, metric: str, given: Direction | None) -> Direction:
        """Return the direction of a metric: as agreed, given, usual, or "greater" with a warning.

        Args:
            metric: The name of the metric.
            given: The direction that a hook was given, if any.
        """
        if metric in self._agreed:
            return self._agreed[metric][0]
        found = given or self.usual(metric)
        if found is None:
            self._logger.warning(
                "cannot infer whether to minimize or maximize %r; assuming that higher is better: "
                "set rule='less' in EvalHook if lower is better",
                metric,
            )
            found = "greater"
            self._agreed[metric] = (found, "")
        return found

    def usual(self, metric: str) -> Direction | None:
        """Return the direction from the metric's `higher_is_better`, or else from its name."""
        own = getattr(self._metric_objects.get(metric.rpartition("/")[2]), "higher_is_better", None)
        if own is None:
            return infer_direction(metric)
        return "greater" if own else "less"

    def reset(self) -> None:
        """Forget the directions that hooks were given."""
        self._agreed = {}
