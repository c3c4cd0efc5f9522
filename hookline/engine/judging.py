"""Which metric models are judged by, and which way it gets better: the same for all hooks that judge."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hookline.engine.metrics import DEFAULT_METRIC, Rule, Unasked, better_when, check_metric_name, choose_metric, rule_for
from hookline.errors import ConfigError, suggest

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

NOBODY = ""


@dataclass
class Judging:
    """What hooks were told about metrics."""

    best_metric: str | None = None  # what EvalHook was told to judge by, for all that were told nothing
    _rules: dict[str, tuple[Rule, str]] = field(default_factory=dict, repr=False)  # of metrics for which a hook was told, and which hook
    _awaited: list[tuple[str, str]] = field(default_factory=list, repr=False)  # who goes by which metric; told if no validation gives it

    def names(self, runner: BaseRunner) -> list[str] | None:
        """The names that a validation will give; None where only the validation can tell, or there is none."""
        raise NotImplementedError

    def check_name(self, runner: BaseRunner, who: str, wanted: str, default: str | None = None) -> str | None:
        """Refuse a metric that no validation will give; the one chosen instead of a default that is not measured."""
        at_work = [hook for site in ("after_val_iter", "after_val_epoch") for hook in runner.sites.plan.get(site, ())]
        others = any(not type(hook).__module__.startswith("hookline.hooks.") for hook in at_work)
        if wanted != "auto" and wanted != default:
            self._awaited.append((who, wanted))
        return check_metric_name(who, wanted, self.names(runner), default, others)

    def set_rule(
        self, runner: BaseRunner, who: str, wanted: str, rule: Rule, greater: Collection[str] = (), less: Collection[str] = ()
    ) -> None:
        """Have what a hook was told of which way a metric gets better hold for all hooks: they are to agree on what the best is."""
        if isinstance(rule, Unasked) and not greater and not less:
            return
        metric = choose_metric(wanted, self.names(runner) or (), DEFAULT_METRIC) or wanted
        told = rule_for(metric, rule, greater, less)
        earlier, other = self._rules.setdefault(metric, (told, who))
        if other == NOBODY:
            self._rules[metric] = told, who
        elif earlier != told:
            raise ConfigError(f"{who}: the rule for {metric!r} is {told!r} here and {earlier!r} in {other}: give both the same")

    def rule_of(self, runner: BaseRunner, metric: str, rule: Rule) -> Rule:
        """Which way a metric gets better: as a hook was told, or as its name or the metric itself tells, or else as `rule` says."""
        if metric in self._rules:
            return self._rules[metric][0]
        own: bool | None = getattr(runner.metric_objects.get(metric.rpartition("/")[2]), "higher_is_better", None)
        told = "less" if rule == "less" else better_when(metric) or (None if own is None else "greater" if own else "less")
        if told is None and isinstance(rule, Unasked):
            text = "nothing tells whether more or less %r is better: the highest is taken for the best; set 'rule' of EvalHook"
            runner.logger.warning(text, metric)
            self._rules[metric] = "greater", NOBODY
        return "less" if told == "less" else "greater"

    def tell_missing(self, runner: BaseRunner) -> None:
        """After the first validation: who waits for a metric that it did not give, and that nobody has added."""
        awaited, self._awaited = self._awaited, []
        for who, wanted in awaited:
            if wanted not in runner.metrics:
                hint = suggest(wanted, runner.metrics)
                runner.logger.warning("%s: the validation gave no metric %r%s", who, wanted, hint)
