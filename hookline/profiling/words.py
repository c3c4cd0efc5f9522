"""Where the time goes, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from hookline.engine.cost_report import readable
from hookline.engine.costs import HOT, Costs

ADVICE = {
    "data": (0.2, "Training waits for data: more workers (loader.num_workers) or cheaper transforms help."),
    "hooks": (0.1, "Hooks take a good part of it."),
    "optimizer": (0.4, "The optimizer takes long: a fused one (fused=True) or larger batches help."),
}
PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class Spent(NamedTuple):
    """What was timed so far: how many iterations, and the seconds of their phases and hooks."""

    iterations: int
    phases: dict[str, float]
    hooks: dict[str, float]

    @classmethod
    def of(cls, costs: Costs) -> Spent:
        iterations, phases = costs.measured()
        hooks = {f"{hook} at {site}": cell.total for (hook, site), cell in costs.cells.items() if site in HOT and site != "optimize"}
        return cls(iterations, dict(phases), hooks)

    def since(self, before: Spent) -> Spent:
        """What came after an earlier state, as the mean of an iteration."""
        count = max(1, self.iterations - before.iterations)
        phases = {name: (seconds - before.phases.get(name, 0.0)) / count for name, seconds in self.phases.items()}
        hooks = {name: (seconds - before.hooks.get(name, 0.0)) / count for name, seconds in self.hooks.items()}
        return Spent(self.iterations - before.iterations, phases, hooks)


def in_words(spent: Spent, flops: int) -> str:
    """What an iteration spends its time on; `flops` are those of one."""
    whole = sum(spent.phases.values())
    if not whole:
        return "No whole iteration was profiled."
    ordered = sorted(spent.phases.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{name} {seconds / whole:.0%} ({readable(seconds)})" for name, seconds in ordered)
    lines = [f"{spent.iterations} iterations were profiled, {readable(whole)} each: {shares}."]
    lines.append(f"Most of the time goes into {ordered[0][0]}.")
    lines += [text for name, (limit, text) in ADVICE.items() if spent.phases.get(name, 0.0) > limit * whole]
    if spent.hooks:
        name, seconds = max(spent.hooks.items(), key=lambda item: item[1])
        lines.append(f"The costliest hook is {name}: {readable(seconds)} an iteration ({seconds / whole:.1%}).")
    if flops:
        rate = f"{engineering(flops / whole)}FLOP/s"
        lines.append(f"An iteration computes {engineering(flops)}FLOP, forward and backward: {rate} while it is profiled.")
    return "\n".join(lines)


def busiest(averages: Any, device_time: bool, count: int = 3) -> str:
    """The operators that take most of the time, from a profile's `key_averages()`."""
    operators = [event for event in averages if not event.key.startswith(("hookline/", "ProfilerStep"))]
    attribute = "self_device_time_total" if device_time else "self_cpu_time_total"
    times = {event.key: getattr(event, attribute) for event in operators}
    whole = sum(times.values()) or 1.0
    named = [f"{name} {times[name] / whole:.0%}" for name in sorted(times, key=lambda name: -times[name])[:count]]
    return f"Operators that take most: {', '.join(named)}."


def engineering(value: float) -> str:
    """`1.23 G`."""
    prefix = next((name for name, size in reversed(PREFIXES.items()) if value >= size), "")
    return f"{value / PREFIXES[prefix]:.3g} {prefix}"
