"""`hookline plan`: which hooks run at which site, in which order, and why in that one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from hookline.cli.arguments import UsageError
from hookline.cli.common import registering
from hookline.cli.output import hook_label, print_json, print_table, priority_label
from hookline.config import Config, load_config
from hookline.config.hooks import checked_hooks
from hookline.config.schedules import hook_configs
from hookline.engine import BaseHook, get_priority
from hookline.engine.cost_report import FILE, iteration_text, readable
from hookline.engine.registration import HookHost
from hookline.errors import Path
from hookline.hooks import get_default_hooks

RULES = {
    "nested": "before_* by ascending priority, then by registration; all other sites in the opposite order",
    "flat": "by ascending priority, then by registration, at all sites",
}


class Planned(NamedTuple):
    """A hook of a config, and what its place in the order comes from."""

    hook: BaseHook
    registered: int  # counted from 1
    origin: str  # "default hook", or where the config has it
    priority_from: str  # "class", "config", or "constructor" if the hook set it by itself


def run(args: argparse.Namespace) -> int:
    if args.config is None and args.cost is None:
        raise UsageError("hookline plan needs a config, or --cost and the work directory of a run")
    costs = None if args.cost is None else read_costs(FilePath(args.cost))
    config = load_config(FilePath(args.cost) / "config.yaml" if args.config is None else args.config, args.overrides)
    host, planned = plan(config)
    if args.json:
        print_json(_as_json(host, planned) | ({} if costs is None else {"costs": costs}))
    else:
        _print(host, planned, costs)
    return 0


def plan(config: Config) -> tuple[HookHost, list[Planned]]:
    """The hooks of a config, registered as the runner would do it; neither data nor model are touched, nothing is written."""
    asked = checked_hooks(config)
    written = dict(hook_configs(config))
    defaults = get_default_hooks(replaced_by=asked.values(), without=config.get("drop_hooks") or [])
    host = HookHost(config.get("hook_order") or "nested")
    with registering(config):
        host.register_hooks([*defaults, *asked.values()])
    planned = []
    for number, hook in enumerate(host.hooks, start=1):
        path = next((path for path, own in asked.items() if own is hook), None)
        origin = "default hook" if path is None else _place(config, path)
        planned.append(Planned(hook, number, origin, _priority_source(hook, {} if path is None else written[path])))
    return host, planned


def _place(config: Config, path: Path) -> str:
    file, line = config.place(path)
    return "config" if file is None else file if line is None else f"{file}:{line}"


def _priority_source(hook: BaseHook, written: dict[str, Any]) -> str:
    if "priority" in written:
        return "config"
    return "constructor" if get_priority(hook.priority) != get_priority(type(hook).priority) else "class"


def read_costs(run: FilePath) -> dict[str, Any]:
    """What a run left about the costs of its hooks; an error that says what to do if it left nothing."""
    path = run / FILE
    try:
        costs: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--cost: {path} cannot be read ({error.strerror}): a run writes it at its end into its work directory") from error
    except ValueError as error:
        raise UsageError(f"--cost: {path} is damaged: {error}") from error
    return costs


def _print(host: HookHost, planned: list[Planned], costs: dict[str, Any] | None) -> None:
    print(f"hook_order: {host.hook_order} ({RULES[host.hook_order]})\n")
    by_hook = {id(item.hook): item for item in planned}
    spent = {(row["hook"], row["site"]): row for row in costs["hooks"]} if costs else {}
    rows = []
    for site, hooks in host.sites.plan.items():
        for position, hook in enumerate(hooks, start=1):
            item = by_hook[id(hook)]
            priority = f"{priority_label(hook.priority)} ({item.priority_from})"
            start = (site if position == 1 else "", str(position), hook_label(hook))
            cost = _cost(spent.get((hook.name, site))) if costs else ()
            rows.append((*start, *cost, priority, str(item.registered), item.origin))
    print_table(rows, ("site", "", "hook", *(("a call", "of the run") if costs else ()), "priority (from)", "registered", "origin"))
    busy = {id(hook) for hooks in host.sites.plan.values() for hook in hooks}
    idle = [hook_label(item.hook) for item in planned if id(item.hook) not in busy]
    if idle:
        print(f"\nat no site: {', '.join(idle)}")
    if costs and costs["phases"]:
        print(f"\n{iteration_text(costs)}")


def _cost(row: dict[str, Any] | None) -> tuple[str, str]:
    return ("-", "-") if row is None else (readable(row["seconds_per_call"]), f"{row['share']:.1%}")


def _as_json(host: HookHost, planned: list[Planned]) -> dict[str, Any]:
    hooks = [
        {
            "name": item.hook.name,
            "type": type(item.hook).__name__,
            "priority": get_priority(item.hook.priority),
            "priority_from": item.priority_from,
            "registered": item.registered,
            "origin": item.origin,
        }
        for item in planned
    ]
    return {
        "hook_order": host.hook_order,
        "hooks": hooks,
        "sites": {site: [hook.name for hook in here] for site, here in host.sites.plan.items()},
    }
