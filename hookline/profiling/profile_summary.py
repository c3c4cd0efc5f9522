"""The summary of a profile: where the time of an iteration goes, and advice."""

from __future__ import annotations

from typing import Any, NamedTuple

from hookline.profiling.cost_report import format_seconds
from hookline.profiling.hook_costs import HOT_SITES, HookCosts

ADVICE = {
    "data": (
        0.2,
        "Training waits for data: use more workers (loader.num_workers) or cheaper transforms.",
    ),
    "hooks": (0.1, "Hooks take a large share."),
    "optimizer": (
        0.4,
        "The optimizer is slow: use a fused one (fused=True) or larger batches.",
    ),
}
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class PhaseTimes(NamedTuple):
    """The number of sampled iterations, and the seconds of their phases and hooks."""

    iterations: int
    phases: dict[str, float]
    hooks: dict[str, float]

    @classmethod
    def from_costs(cls, costs: HookCosts) -> PhaseTimes:
        """Return the times measured so far."""
        iterations, phases = costs.phase_totals()
        hooks = {}
        for (hook, site), timing in costs.timings.items():
            if site in HOT_SITES and site != "optimize":
                hooks[f"{hook} at {site}"] = timing.total
        return cls(iterations, dict(phases), hooks)

    def since(self, before: PhaseTimes) -> PhaseTimes:
        """Return the means per iteration since earlier measurements."""
        count = max(1, self.iterations - before.iterations)
        phases = _mean_increase(before.phases, self.phases, count)
        hooks = _mean_increase(before.hooks, self.hooks, count)
        return PhaseTimes(self.iterations - before.iterations, phases, hooks)


def describe_phases(times: PhaseTimes, flops: int) -> str:
    """Describe how an iteration spends its time.

    Args:
        times: Means per iteration.
        flops: Floating point operations of an iteration.
    """
    whole = sum(times.phases.values())
    if not whole:
        return "No whole iteration was profiled."
    ordered = sorted(times.phases.items(), key=lambda item: -item[1])
    shares = ", ".join(
        f"{name} {seconds / whole:.0%} ({format_seconds(seconds)})" for name, seconds in ordered
    )
    lines = [f"Profiled {times.iterations} iterations of {format_seconds(whole)}: {shares}."]
    lines.append(f"The longest phase is {ordered[0][0]}.")
    for name, (limit, text) in ADVICE.items():
        if times.phases.get(name, 0.0) > limit * whole:
            lines.append(text)
    if times.hooks:
        name, seconds = max(times.hooks.items(), key=lambda item: item[1])
        lines.append(
            f"The most expensive hook is {name}: {format_seconds(seconds)} an iteration "
            f"({seconds / whole:.1%})."
        )
    if flops:
        rate = f"{format_quantity(flops / whole)}FLOP/s"
        lines.append(
            f"An iteration has {format_quantity(flops)}FLOP, forward and backward: {rate} while "
            "profiled."
        )
    return "\n".join(lines)


def _mean_increase(
    before: dict[str, float], after: dict[str, float], count: int
) -> dict[str, float]:
    return {name: (after[name] - before.get(name, 0.0)) / count for name in after}


def describe_operators(averages: Any, device_time: bool, count: int = 3) -> str:
    """Name the operators that take most of the time, from a profile's `key_averages()`."""
    attribute = "self_device_time_total" if device_time else "self_cpu_time_total"
    times = {}
    for event in averages:
        if not event.key.startswith(("hookline/", "ProfilerStep")):
            times[event.key] = getattr(event, attribute)
    whole = sum(times.values()) or 1.0
    longest = sorted(times, key=lambda name: -times[name])[:count]
    shares = ", ".join(f"{name} {times[name] / whole:.0%}" for name in longest)
    return f"Most expensive operators: {shares}."


def format_quantity(value: float) -> str:
    """Format a number with a prefix: `1.23 G`."""
    for prefix, size in reversed(PREFIXES.items()):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "
