"""`hookline rehearse`: what would go wrong in a run, and what it would need, before it takes hours to find out."""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

from hookline.cli.common import make_runner, options
from hookline.cli.output import print_json, print_table
from hookline.config import load_config
from hookline.errors import ConfigError
from hookline.events.logs import escaped
from hookline.rehearsal import Finding, Rehearsal, rehearse
from hookline.rehearsal.needs import readable
from hookline.report.summary import readable_seconds
from hookline.runner import Runner

MISTAKE = 2


def run(args: argparse.Namespace) -> int:
    began, overrides = time.monotonic(), [*args.overrides, *options(args, "work_dir", "device")]
    config = load_config(args.config, overrides)

    def make(more: list[str]) -> Runner:
        return make_runner(load_config(args.config, [*overrides, *more]))

    try:
        result = rehearse(make, Path(config["work_dir"]), resume=config.get("resume"), limit=args.limit)
    except ConfigError as error:  # nothing could be built, so that there was nothing to rehearse
        result = Rehearsal([Finding("error", "config", str(problem), "") for problem in error.problems])
        _show(result, args.json, time.monotonic() - began)
        return MISTAKE
    _show(result, args.json, time.monotonic() - began)
    return 1 if result.errors else 0


def _show(result: Rehearsal, as_json: bool, seconds: float) -> None:
    if as_json:
        print_json({"ready": not result.errors, **dataclasses.asdict(result)})
        return
    for finding in sorted(result.findings, key=lambda each: each.level):
        print(f"{finding.level}: {finding.where}: {escaped(finding.text)}")
        if finding.advice:
            print(f"  → {finding.advice}")
    rows = _needs(result)
    if rows:
        print()
        print_table(rows)
    warnings = len(result.findings) - len(result.errors)
    verdict = f"{len(result.errors)} would go wrong" if result.errors else "nothing would go wrong"
    print(f"\nrehearsed in {readable_seconds(seconds)}: {verdict}{f', {warnings} to look at' if warnings else ''}")


def _needs(result: Rehearsal) -> list[tuple[str, str]]:
    rows = []
    if result.done:
        rows.append(("rehearsed", ", ".join(result.done)))
    if result.read:
        rows.append(("samples read", ", ".join(f"{split} {amount}" for split, amount in result.read.items())))
    if result.seconds:
        parts = ", ".join(f"{name} {readable_seconds(value)}" for name, value in result.seconds.items())
        rows.append(("whole run", f"about {readable_seconds(sum(result.seconds.values()))} ({parts})"))
    if result.disk:
        disk = result.disk
        rows.append(
            ("disk", f"{readable(disk['checkpoints'])} for checkpoints of {readable(disk['checkpoint'])}; {readable(disk['free'])} free")
        )
    if result.memory:
        memory = result.memory
        parts = ", ".join(f"{name} {readable(memory[name])}" for name in ("weights", "gradients", "optimizer", "snapshot"))
        rows.append(("memory", f"{parts}; peak {readable(memory['peak'])} of {readable(memory['there'])}"))
    return rows
