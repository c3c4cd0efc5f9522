"""Describe the time of an iteration in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from hookline.profiling.cost_report import readable
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


class Spent(NamedTuple):
    """The number of sampled iterations, and the seconds of their phases and hooks."""

    iterations: int
    phases: dict[str, float]
    hooks: dict[str, float]

    @classmethod
    def of(cls, costs: HookCosts) -> Spent:
        """Return the measurements so far."""
        iterations, phases = costs.phase_totals()
        hooks = {}
        for (hook, site), timing in costs.timings.items():
            if site in HOT_SITES and site != "optimize":
                hooks[f"{hook} at {site}"] = timing.total
        return cls(iterations, dict(phases), hooks)

    def since(self, before: Spent) -> Spent:
        """Return the means per iteration since earlier measurements."""
        count = max(1, self.iterations - before.iterations)
        phases = {
            name: (seconds - before.phases.get(name, 0.0)) / count
            for name, seconds in self.phases.items()
        }
        hooks = {
            name: (seconds - before.hooks.get(name, 0.0)) / count
            for name, seconds in self.hooks.items()
        }
        return Spent(self.iterations - before.iterations, phases, hooks)


def in_words(spent: Spent, flops: int) -> str:
    """Describe how an iteration spends its time.

    Args:
        spent: Means per iteration.
        flops: Floating point operations of an iteration.
    """
    whole = sum(spent.phases.values())
    if not whole:
        return "No whole iteration was profiled."
    ordered = sorted(spent.phases.items(), key=lambda item: -item[1])
    shares = ", ".join(
        f"{name} {seconds / whole:.0%} ({readable(seconds)})" for name, seconds in ordered
    )
    lines = [f"Profiled {spent.iterations} iterations of {readable(whole)}: {shares}."]
    lines.append(f"The longest phase is {ordered[0][0]}.")
    for name, (limit, text) in ADVICE.items():
        if spent.phases.get(name, 0.0) > limit * whole:
            lines.append(text)
    if spent.hooks:
        name, seconds = max(spent.hooks.items(), key=lambda item: item[1])
        lines.append(
            f"The most expensive hook is {name}: {readable(seconds)} an iteration "
            f"({seconds / whole:.1%})."
        )
    if flops:
        rate = f"{engineering(flops / whole)}FLOP/s"
        lines.append(
            f"An iteration has {engineering(flops)}FLOP, forward and backward: {rate} while "
            "profiled."
        )
    return "\n".join(lines)


def busiest(averages: Any, device_time: bool, count: int = 3) -> str:
    """Name the operators that take most of the time, from a profile's `key_averages()`."""
    operators = [
        event for event in averages if not event.key.startswith(("hookline/", "ProfilerStep"))
    ]
    attribute = "self_device_time_total" if device_time else "self_cpu_time_total"
    times = {event.key: getattr(event, attribute) for event in operators}
    whole = sum(times.values()) or 1.0
    named = [
        f"{name} {times[name] / whole:.0%}"
        for name in sorted(times, key=lambda name: -times[name])[:count]
    ]
    return f"Most expensive operators: {', '.join(named)}."


def engineering(value: float) -> str:
    """Format a number with a prefix: `1.23 G`."""
    prefix = next((name for name, size in reversed(PREFIXES.items()) if value >= size), "")
    return f"{value / PREFIXES[prefix]:.3g} {prefix}"
