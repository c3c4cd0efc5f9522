"""`hookline dry-run`: try a run on a few batches and print the findings."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hookline.cli.common import make_runner, option_overrides
from hookline.cli.errors import ExitCode
from hookline.cli.output import print_json, print_table
from hookline.cli.printing import show
from hookline.config import check, load_config
from hookline.dry_run import DryRunResult, Finding, dry_run
from hookline.duration import format_duration
from hookline.errors import ConfigError
from hookline.events.format import format_bytes
from hookline.remote import locate_work_dir
from hookline.runner import Runner


def run(
    config: str,
    overrides: Sequence[str],
    work_dir: str | None,
    device: str | None,
    limit: float,
    as_json: bool,
) -> int:
    """Print errors, warnings and estimates; return USAGE if the config itself is wrong."""
    start = time.monotonic()
    settings = [*overrides, *option_overrides(work_dir=work_dir, device=device)]
    resolved = load_config(config, settings)

    def make(changes: Mapping[str, Any]) -> Runner:
        more = [f"{name}={json.dumps(value)}" for name, value in changes.items()]
        return make_runner(load_config(config, [*settings, *more]))

    try:
        check(resolved)  # The dry run replaces some of the values by its own.
        directory = locate_work_dir(resolved["work_dir"]).path
        result = dry_run(make, directory, resume=resolved.get("resume"), limit=limit)
        code = ExitCode.FAILED if result.errors else ExitCode.OK
    except ConfigError as error:  # Nothing could be built.
        findings = [Finding("error", "config", str(problem)) for problem in error.problems]
        result = DryRunResult(findings)
        code = ExitCode.USAGE
    if as_json:
        print_json({"ready": not result.errors, **dataclasses.asdict(result)})
    else:
        _print_text(result, time.monotonic() - start)
    return code


def _print_text(result: DryRunResult, seconds: float) -> None:
    for finding in [*result.errors, *result.warnings]:
        show(str(finding))
    rows = _estimate_rows(result)
    if rows:
        show()
        print_table(rows)
    show(f"\ndry run finished in {format_duration(seconds)}: {result.summary()}")


def _estimate_rows(result: DryRunResult) -> list[tuple[str, str]]:
    rows = []
    if result.done:
        rows.append(("tried", ", ".join(result.done)))
    if result.read:
        amounts = [f"{split} {amount}" for split, amount in result.read.items()]
        rows.append(("samples read", ", ".join(amounts)))
    if result.seconds:
        total = format_duration(sum(result.seconds.values()))
        parts = [f"{name} {format_duration(value)}" for name, value in result.seconds.items()]
        rows.append(("whole run", f"about {total} ({', '.join(parts)})"))
    if result.disk:
        sizes = {name: format_bytes(size) for name, size in result.disk.items()}
        text = f"{sizes['checkpoints']} for checkpoints of {sizes['checkpoint']}"
        rows.append(("disk", f"{text}; {sizes['free']} free"))
    if result.memory:
        sizes = {name: format_bytes(size) for name, size in result.memory.items()}
        names = ("weights", "gradients", "optimizer", "snapshot")
        parts = [f"{name} {sizes[name]}" for name in names]
        text = f"{', '.join(parts)}; peak {sizes['peak']} of {sizes['total']}"
        rows.append(("memory", text))
    return rows
