"""What a run's time went into: a table for people, a file for programs, and a warning when hooks take too much of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hookline.engine.costs import HOT, PHASES

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

FILE = "hook_costs.json"
DEFAULT_BUDGET = "5%"
ENOUGH = 6  # timed iterations before anything is said about them
NOTICEABLE = 1e-4  # seconds an iteration: what hooks of a toy model take is a large share of very little
NOTICEABLE_BETWEEN = 1.0  # seconds of a whole run, for what happens between iterations
SHOWN = 1e-2  # of the run: who took less is named in the file alone
MOST = 3  # lines for hooks, besides those that took noticeable time: of a run of seconds hardly anything is worth knowing


def as_share(value: float | str) -> float:
    """A share given as `5%` or as 0.05."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if isinstance(value, bool) or not 0 < share <= 1:
        raise ValueError(f"hook_budget must be a share of the time such as 5% or 0.05, got {value!r}")
    return share


def cost_table(runner: BaseRunner) -> dict[str, Any]:
    """All that was measured, as plain values; hooks by what they took of the run, the costliest first."""
    costs, wall = runner.costs, runner.costs.seconds()
    samples, phases = costs.measured()
    iterations = runner.iter - costs.first
    seams = {name: {"count": cell.count, "seconds": cell.total, "longest": cell.longest} for name, cell in costs.seams.items()}
    hooks = [_row(runner, hook, site, iterations, wall) for (hook, site), cell in costs.cells.items() if cell.count]
    return {
        "iterations": iterations,
        "timed_iterations": samples,
        "seconds": wall,
        "seconds_per_iteration": sum(phases.values()) / samples if samples else None,
        "phases": {name: phases[name] / samples for name in PHASES} if samples else {},
        "seams": {name: cell for name, cell in seams.items() if cell["count"]},
        "hook_budget": runner.hook_budget,
        "hooks": sorted(hooks, key=lambda row: -row["seconds"]),
    }


def report(runner: BaseRunner) -> None:
    """Log the table and keep it in the work directory, if the run has made one."""
    table = cost_table(runner)
    if not table["timed_iterations"]:
        return
    runner.logger.info("%s", as_text(table))
    for row in table["hooks"]:
        too_much = row["share"] > runner.hook_budget and row["seconds"] > NOTICEABLE_BETWEEN
        if row["site"] not in HOT and too_much:
            runner.logger.warning(
                "%s at %s took %s, %.0f%% of the run; hook_budget is %g%%",
                row["hook"], row["site"], readable(row["seconds"]), 100 * row["share"], 100 * runner.hook_budget,
            )  # fmt: skip
    for name, count in (runner.costs.syncs.found if runner.costs.syncs is not None else {}).items():
        runner.logger.warning("%s makes the host wait for the device: %d times in %d timed iterations", name, count, runner.costs.samples)
    if runner.is_main and runner.work_dir.is_dir():
        (runner.work_dir / FILE).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def check_budget(runner: BaseRunner) -> None:
    """Warn, once in a run, when the hooks of an iteration take more of it than they may."""
    costs = runner.costs
    if costs.budget_told or costs.samples < ENOUGH:
        return
    samples, phases = costs.measured()
    if not samples:
        return  # the device has not told yet
    iteration = sum(phases.values()) / samples
    # Without the longest call: that once something else was in the way says nothing about a hook.
    hot = [(key, cell) for key, cell in costs.cells.items() if key[1] in HOT and key[1] != "optimize"]
    each = {key: (cell.total - cell.longest) / (costs.samples - 1) for key, cell in hot}
    total = sum(each.values())
    if total < NOTICEABLE or total <= runner.hook_budget * iteration:
        return
    costs.budget_told = True
    worst = sorted(each, key=lambda key: -each[key])[:3]
    named = [f"{hook} at {site} {readable(each[hook, site])} ({each[hook, site] / iteration:.0%})" for hook, site in worst]
    kept = [text for text, key in zip(named, worst, strict=True) if key == worst[0] or each[key] > total / 10]
    runner.logger.warning(
        "hooks take %.0f%% of an iteration of %s, more than hook_budget (%g%%): %s",
        100 * total / iteration, readable(iteration), 100 * runner.hook_budget, ", ".join(kept),
    )  # fmt: skip


def as_text(table: dict[str, Any]) -> str:
    """What matters of the table, as lines: the costliest hooks, and the others together."""
    lines, hooks = [iteration_text(table)], table["hooks"]
    between = []
    for name, cell in table["seams"].items():
        often = "once" if cell["count"] == 1 else f"{cell['count']} times"
        mean, share = readable(cell["seconds"] / cell["count"]), cell["seconds"] / table["seconds"]
        between.append(f"{name}: {often} {mean}, {share:.1%} of the run")
    if between:
        lines.append("; ".join(between))
    shown = [row for rank, row in enumerate(hooks) if row["share"] >= SHOWN and (rank < MOST or row["seconds"] >= NOTICEABLE_BETWEEN)]
    for row in shown:
        lines.append(f"{row['hook']} at {row['site']}: {readable(row['seconds_per_call'])} a call, {row['share']:.1%} of the run")
    if rest := hooks[len(shown) :]:  # the costliest come first
        lines.append(f"{len(rest)} more: {sum(row['share'] for row in rest):.1%} of the run together")
    return "\n  ".join(lines)


def iteration_text(table: dict[str, Any]) -> str:
    """How long an iteration takes, and what for."""
    whole = table["seconds_per_iteration"]
    parts = ", ".join(f"{name} {seconds / whole:.0%}" for name, seconds in table["phases"].items())
    return f"an iteration took {readable(whole)}: {parts} (timed in {table['timed_iterations']} of {table['iterations']})"


def readable(seconds: float) -> str:
    """`12.3 µs`, `5.02 ms` or `1.2 s`."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def _row(runner: BaseRunner, hook: str, site: str, iterations: int, wall: float) -> dict[str, Any]:
    cell = runner.costs.cells[hook, site]
    # Of the sites of an iteration only some calls were timed: the rest took as long on average.
    seconds = cell.total / runner.costs.samples * iterations if site in HOT and runner.costs.samples else cell.total
    row = {"hook": hook, "site": site, "timed_calls": cell.count, "seconds_per_call": cell.total / cell.count, "longest": cell.longest}
    syncs = runner.costs.syncs.found[f"{hook}.{site}"] if runner.costs.syncs is not None else 0
    return {**row, "seconds": seconds, "share": seconds / wall, **({"synchronizations": syncs} if syncs else {})}
