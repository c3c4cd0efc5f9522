"""Report the time of a run by phase and hook: a table in the log, a JSON file, a budget warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hookline.errors import ConfigError
from hookline.files import replace_file
from hookline.profiling.hook_costs import HOT_SITES, PHASES, HookCosts

COSTS_FILE = "hook_costs.json"
DEFAULT_BUDGET = "5%"
MIN_SAMPLES = 6  # before the budget is checked
MIN_OVERRUN_S = 1e-4  # per iteration: hooks of a toy model are a large share of very little
MIN_OVERRUN_BETWEEN_S = 1.0  # of a run, for sites that are not in an iteration
MIN_LISTED_SHARE = 1e-2  # of the run; smaller ones are only in the file
MAX_LISTED = 3  # hooks listed in the log, in addition to those above MIN_OVERRUN_BETWEEN_S


def parse_percentage(value: float | str) -> float:
    """Return a share of the time that is given as `5%` or as 0.05."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = -1.0
    if text.endswith("%"):
        share /= 100
    if isinstance(value, bool) or not 0 < share <= 1:
        message = "must be a share of the time such as 5% or 0.05"
        raise ConfigError(message, component="hook_budget", parameter="hook_budget", value=value)
    return share


def cost_table(runner: Any) -> dict[str, Any]:
    """Return all measurements as plain values, the most expensive hook first.

    A resumed run includes the time before the resume, from the file in the work directory.
    """
    costs: HookCosts = runner.sites.costs
    table = _table_of_process(runner, costs)
    if costs.earlier is None:  # The file is still that of the earlier process.
        costs.earlier = read_table(runner.work_dir / COSTS_FILE) if costs.first else {}
    return merge_tables(costs.earlier, table) if costs.earlier else table


def read_table(path: Path) -> dict[str, Any]:
    """Return the table in a file; an empty one if there is none or it is damaged."""
    try:
        table = json.loads(path.read_text())
        merge_tables(table, table)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        return {}
    return dict(table)


def merge_tables(earlier: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the table of two parts of a run."""
    parts = (earlier, now)
    samples = sum(part["timed_iterations"] for part in parts)
    seconds = sum(part["seconds"] for part in parts)
    per_iteration = [
        (part["seconds_per_iteration"] or 0) * part["timed_iterations"] for part in parts
    ]
    phases = {}
    for name in {**earlier["phases"], **now["phases"]}:
        total = sum(part["phases"].get(name, 0) * part["timed_iterations"] for part in parts)
        phases[name] = total / samples
    seams: dict[str, dict[str, Any]] = {}
    hooks: dict[tuple[str, str], dict[str, Any]] = {}
    for part in parts:
        for name, seam in part["seams"].items():
            _add(seams, name, seam, ("count", "seconds"))
        for row in part["hooks"]:
            measured = {**row, "timed_seconds": row["seconds_per_call"] * row["timed_calls"]}
            key = row["hook"], row["site"]
            _add(hooks, key, measured, ("timed_calls", "timed_seconds", "seconds"))
    for row in hooks.values():
        row["seconds_per_call"] = row.pop("timed_seconds") / row["timed_calls"]
        row["share"] = row["seconds"] / seconds
    return {
        **now,
        "iterations": sum(part["iterations"] for part in parts),
        "timed_iterations": samples,
        "seconds": seconds,
        "seconds_per_iteration": sum(per_iteration) / samples if samples else None,
        "phases": phases,
        "seams": seams,
        "hooks": sorted(hooks.values(), key=lambda row: -row["seconds"]),
    }


def _add(
    rows: dict[Any, dict[str, Any]], key: object, row: dict[str, Any], sums: tuple[str, ...]
) -> None:
    """Add a row to the one with the same key."""
    known = rows.get(key)
    if known is None:
        rows[key] = dict(row)
        return
    for name in sums:
        known[name] += row[name]
    known["longest"] = max(known["longest"], row["longest"])


def _table_of_process(runner: Any, costs: HookCosts) -> dict[str, Any]:
    seconds = costs.seconds()
    samples, phases = costs.phase_totals()
    iterations = runner.iter - costs.first
    seams = {}
    for name, timing in costs.seams.items():
        if timing.count:
            seams[name] = {
                "count": timing.count,
                "seconds": timing.total,
                "longest": timing.longest,
            }
    rows = [
        _row(costs, hook, site, iterations, seconds)
        for (hook, site), timing in costs.timings.items()
        if timing.count
    ]
    _limit(rows, seconds, seconds - sum(seam["seconds"] for seam in seams.values()))
    return {
        "iterations": iterations,
        "timed_iterations": samples,
        "seconds": seconds,
        "seconds_per_iteration": sum(phases.values()) / samples if samples else None,
        "phases": {name: phases[name] / samples for name in PHASES} if samples else {},
        "seams": seams,
        "hook_budget": costs.budget,
        "hooks": sorted(rows, key=lambda row: -row["seconds"]),
    }


def report_costs(runner: Any) -> None:
    """Log the table, warn about slow hooks, and write the file if the work directory exists."""
    costs: HookCosts = runner.sites.costs
    table = cost_table(runner)
    if not table["timed_iterations"]:
        return
    runner.logger.info("%s", format_table(table), extra={"is_detail": True})
    for row in table["hooks"]:
        is_over = row["share"] > costs.budget and row["seconds"] > MIN_OVERRUN_BETWEEN_S
        if row["site"] not in HOT_SITES and is_over:
            runner.logger.warning(
                "%s at %s took %s, %.0f%% of the run; hook_budget is %g%%",
                row["hook"],
                row["site"],
                format_seconds(row["seconds"]),
                100 * row["share"],
                100 * costs.budget,
            )
    if costs.syncs is not None:
        for name, count in costs.syncs.found.items():
            runner.logger.warning(
                "%s makes the host wait for the device: %d times in %d sampled iterations",
                name,
                count,
                costs.samples,
            )
    if runner.is_main and runner.work_dir.is_dir():
        replace_file(runner.work_dir / COSTS_FILE, json.dumps(table, indent=1) + "\n")


def check_budget(runner: Any) -> None:
    """Warn, once in a run, when the hooks of an iteration take more than `hook_budget`."""
    costs: HookCosts = runner.sites.costs
    if costs.budget_warned or costs.samples < MIN_SAMPLES:
        return
    samples, phases = costs.phase_totals()
    if not samples:
        return  # the device has not answered yet
    iteration = sum(phases.values()) / samples
    each = _seconds_per_iteration(costs)
    total = sum(each.values())
    if total < MIN_OVERRUN_S or total <= costs.budget * iteration:
        return
    costs.budget_warned = True
    listed: list[str] = []
    for hook, site in sorted(each, key=lambda key: -each[key])[:MAX_LISTED]:
        seconds = each[hook, site]
        if not listed or seconds > total / 10:
            listed.append(f"{hook} at {site} {format_seconds(seconds)} ({seconds / iteration:.0%})")
    runner.logger.warning(
        "hooks take %.0f%% of an iteration of %s, more than hook_budget (%g%%): %s",
        100 * total / iteration,
        format_seconds(iteration),
        100 * costs.budget,
        ", ".join(listed),
    )


def format_table(table: dict[str, Any]) -> str:
    """Format the table: the iteration, the seams, the most expensive hooks."""
    lines = [format_iteration(table)]
    seams = []
    for name, seam in table["seams"].items():
        times = "once" if seam["count"] == 1 else f"{seam['count']} times"
        mean = format_seconds(seam["seconds"] / seam["count"])
        seams.append(f"{name}: {times} {mean}, {seam['seconds'] / table['seconds']:.1%} of the run")
    if seams:
        lines.append("; ".join(seams))
    others = []
    for rank, row in enumerate(table["hooks"]):
        is_large = rank < MAX_LISTED or row["seconds"] >= MIN_OVERRUN_BETWEEN_S
        if row["share"] >= MIN_LISTED_SHARE and is_large:
            per_call = format_seconds(row["seconds_per_call"])
            share = f"{row['share']:.1%} of the run"
            lines.append(f"{row['hook']} at {row['site']}: {per_call} a call, {share}")
        else:
            others.append(row["share"])
    if others:
        noun = "hook" if len(others) == 1 else "hooks"
        lines.append(f"{len(others)} other {noun}: {sum(others):.1%} of the run")
    return "\n  ".join(lines)


def format_iteration(table: dict[str, Any]) -> str:
    """Format the time of an iteration and the shares of its phases."""
    whole = table["seconds_per_iteration"]
    parts = ", ".join(f"{name} {seconds / whole:.0%}" for name, seconds in table["phases"].items())
    counts = f"timed in {table['timed_iterations']} of {table['iterations']}"
    return f"an iteration took {format_seconds(whole)}: {parts} ({counts})"


def format_seconds(seconds: float) -> str:
    """Format a duration as `12.3 µs`, `5.02 ms` or `1.2 s`."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds * 1e6:.1f} µs"


def _seconds_per_iteration(costs: HookCosts) -> dict[tuple[str, str], float]:
    """Return the mean time of each hook in an iteration, without its longest call.

    One outlier may have another cause than the hook.
    """
    return {
        (hook, site): (timing.total - timing.longest) / (costs.samples - 1)
        for (hook, site), timing in costs.timings.items()
        if site in HOT_SITES and site != "optimize"
    }


def _limit(rows: list[dict[str, Any]], run_seconds: float, available: float) -> None:
    """Shrink extrapolated times that are longer than the run: its samples were slower than it."""
    extrapolated = [row for row in rows if row["site"] in HOT_SITES]
    total = sum(row["seconds"] for row in extrapolated)
    if total <= available:
        return
    for row in extrapolated:
        row["seconds"] *= available / total
        row["share"] = row["seconds"] / run_seconds


def _row(
    costs: HookCosts, hook: str, site: str, iterations: int, run_seconds: float
) -> dict[str, Any]:
    timing = costs.timings[hook, site]
    seconds = timing.total
    if site in HOT_SITES and costs.samples:  # extrapolate from the sampled iterations
        seconds = timing.total / costs.samples * iterations
    row = {
        "hook": hook,
        "site": site,
        "timed_calls": timing.count,
        "seconds_per_call": timing.total / timing.count,
        "longest": timing.longest,
        "seconds": seconds,
        "share": seconds / run_seconds,
    }
    if costs.syncs is not None and costs.syncs.found[f"{hook}.{site}"]:
        row["synchronizations"] = costs.syncs.found[f"{hook}.{site}"]
    return row
