"""`hookline plan`: show which hooks run at which site, in which order and why.

A config with parameter groups or several optimizers also gets a table of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hookline.cli.common import locate_runner_errors
from hookline.cli.errors import CommandLineError
from hookline.cli.output import hook_label, only_json, print_json, print_table, priority_label
from hookline.cli.printing import show
from hookline.config import Config, load_config
from hookline.config.build import build_optimizer
from hookline.config.hooks import checked_hooks
from hookline.config.schedules import hook_configs
from hookline.engine import BaseHook, get_priority
from hookline.engine.manager import HookManager
from hookline.errors import KeyPath
from hookline.hooks import get_default_hooks
from hookline.optim.build import has_groups
from hookline.optim.grouping import GroupRow, describe_groups
from hookline.profiling.cost_report import COSTS_FILE, format_iteration, format_seconds

ORDER_RULES = {
    "nested": "before_* by ascending priority, then by registration; other sites in reverse",
    "flat": "all sites by ascending priority, then by registration",
}
Costs = dict[str, Any]


class PlannedHook(NamedTuple):
    """A hook of a config, and the reasons for its position in the order.

    Args:
        hook: The hook.
        registered: Its position in the order of registration, from 1.
        origin: "default hook", or its location in the config.
        priority_from: "class", "config", or "constructor" if the hook sets its own priority.
    """

    hook: BaseHook
    registered: int
    origin: str
    priority_from: str


def run(config: str | None, overrides: Sequence[str], cost: str | None, as_json: bool) -> int:
    """Print the plan of a config, with the costs of a run if `cost` is given.

    The run of a script has no config, so only its costs are printed.
    """
    if config is not None:
        path = Path(config)
    elif cost is not None:
        path = Path(cost) / "config.yaml"
    else:
        message = "hookline plan needs a config, or --cost and the work directory of a run"
        raise CommandLineError(message, parameter="CONFIG")
    costs = None if cost is None else read_costs(Path(cost))
    if config is None and costs is not None and not path.exists():
        _print_costs(costs, as_json)
        return 0
    groups = []
    with only_json(as_json):
        loaded = load_config(path, overrides)
        host, planned = plan(loaded)
        if has_groups(loaded.get("optimizer")):
            groups = describe_groups(build_optimizer(loaded))
    if as_json:
        _print_json(host, planned, costs, groups)
    else:
        _print_text(host, planned, costs)
        _print_groups(groups)
    return 0


def plan(config: Config) -> tuple[HookManager, list[PlannedHook]]:
    """Register the hooks of a config as a runner would, without model and data."""
    configured = checked_hooks(config)
    written = dict(hook_configs(config))
    paths = {id(hook): path for path, hook in configured.items()}
    dropped = config.get("drop_hooks") or []
    defaults = get_default_hooks(replaced_by=configured.values(), without=dropped)
    host = HookManager(config.get("hook_order") or "nested")
    with locate_runner_errors(config):
        host.register_hooks([*defaults, *configured.values()])
    planned = []
    for number, hook in enumerate(host.hooks, start=1):
        path = paths.get(id(hook))
        if path is None:
            origin = "default hook"
            source = _priority_source(hook, {})
        else:
            origin = _location(config, path)
            source = _priority_source(hook, written[path])
        planned.append(PlannedHook(hook, number, origin, source))
    return host, planned


def read_costs(run: Path) -> Costs:
    """Read the hook costs that a run wrote into its work directory."""
    path = run / COSTS_FILE
    try:
        costs: Costs = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"--cost: cannot read {path} ({error.strerror}); a run writes it when it ends"
        raise CommandLineError(message, parameter="--cost") from error
    except ValueError as error:
        raise CommandLineError(f"--cost: {path} is damaged: {error}", parameter="--cost") from error
    return costs


def _location(config: Config, path: KeyPath) -> str:
    file, line = config.location(path)
    if file is None:
        return "config"
    return file if line is None else f"{file}:{line}"


def _priority_source(hook: BaseHook, written: dict[str, Any]) -> str:
    if "priority" in written:
        return "config"
    if get_priority(hook.priority) != get_priority(type(hook).priority):
        return "constructor"
    return "class"


def _print_text(host: HookManager, planned: list[PlannedHook], costs: Costs | None) -> None:
    show(f"hook_order: {host.sites.order} ({ORDER_RULES[host.sites.order]})\n")
    headers = ["site", "", "hook", "priority (from)", "registered", "origin"]
    if costs is not None:
        headers[3:3] = ["per call", "of the run"]
    print_table(_plan_rows(host, planned, costs), headers)
    active = {id(hook) for hooks in host.sites.hooks.values() for hook in hooks}
    idle = [hook_label(item.hook) for item in planned if id(item.hook) not in active]
    if idle:
        show(f"\nat no site: {', '.join(idle)}")
    if costs is not None and costs["phases"]:
        show(f"\n{format_iteration(costs)}")


def _print_costs(costs: Costs, as_json: bool) -> None:
    """Print the costs of a run whose hooks no config describes, the most expensive first."""
    if as_json:
        print_json({"costs": costs})
        return
    rows = [[row["hook"], row["site"], *_cost_texts(row)] for row in costs["hooks"]]
    print_table(rows, ["hook", "site", "per call", "of the run"])
    if costs["phases"]:
        show(f"\n{format_iteration(costs)}")


def _print_groups(groups: list[GroupRow]) -> None:
    """Print the parameter groups of a config that divides the parameters."""
    if not groups:
        return
    show()
    rows = []
    for row in groups:
        decay = "-" if row.weight_decay is None else f"{row.weight_decay:g}"
        count = f"{row.parameters:,} in {row.tensors}"
        rows.append([row.optimizer, row.group, count, f"{row.lr:g}", decay])
    print_table(rows, ["optimizer", "group", "parameters", "lr", "decay"])


def _plan_rows(
    host: HookManager, planned: list[PlannedHook], costs: Costs | None
) -> list[list[str]]:
    by_hook = {id(item.hook): item for item in planned}
    cost_cells = _cost_cells(costs)
    rows = []
    for site, hooks in host.sites.hooks.items():
        label = site
        for position, hook in enumerate(hooks, start=1):
            item = by_hook[id(hook)]
            row = [label, str(position), hook_label(hook)]
            if costs is not None:
                row += cost_cells.get((hook.name, site), ["-", "-"])
            priority = f"{priority_label(hook.priority)} ({item.priority_from})"
            row += [priority, str(item.registered), item.origin]
            rows.append(row)
            label = ""
    return rows


def _cost_cells(costs: Costs | None) -> dict[tuple[str, str], list[str]]:
    """Return the time per call and the share of the run, by hook and site."""
    cells: dict[tuple[str, str], list[str]] = {}
    if costs is not None:
        for row in costs["hooks"]:
            cells[row["hook"], row["site"]] = _cost_texts(row)
    return cells


def _cost_texts(row: dict[str, Any]) -> list[str]:
    return [format_seconds(row["seconds_per_call"]), f"{row['share']:.1%}"]


def _print_json(
    host: HookManager, planned: list[PlannedHook], costs: Costs | None, groups: list[GroupRow]
) -> None:
    hooks = []
    for item in planned:
        hooks.append(
            {
                "name": item.hook.name,
                "type": type(item.hook).__name__,
                "priority": get_priority(item.hook.priority),
                "priority_from": item.priority_from,
                "registered": item.registered,
                "origin": item.origin,
            }
        )
    sites = {}
    for site, site_hooks in host.sites.hooks.items():
        sites[site] = [hook.name for hook in site_hooks]
    document = {"hook_order": host.sites.order, "hooks": hooks, "sites": sites}
    if groups:
        document["groups"] = [row._asdict() for row in groups]
    if costs is not None:
        document["costs"] = costs
    print_json(document)
