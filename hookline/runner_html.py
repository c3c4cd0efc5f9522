"""A runner as HTML, for the output of a notebook's cell."""

from __future__ import annotations

import html

from hookline.engine.runner import BaseRunner
from hookline.events.describe import describe_model
from hookline.events.format import format_scalars


def runner_as_html(runner: BaseRunner) -> str:
    """Return a table about a run: its model, its position, its results and its hooks."""
    rows = {
        "model": f"{type(runner.model).__name__}: {describe_model(runner.model)}",
        "device": str(runner.device),
        "position": _position(runner),
        "last": format_scalars(runner.metrics),
        "best": _best(runner),
        "stopped": "" if runner.stop_reason is None else str(runner.stop_reason),
        "hooks": ", ".join(hook.name for hook in runner.hooks),
        "folder": str(runner.work_dir),
    }
    lines = []
    for label, text in rows.items():
        if text:
            lines.append(f"<tr><th>{label}</th><td>{html.escape(text)}</td></tr>")
    return f"<table>{''.join(lines)}</table>"


def _position(runner: BaseRunner) -> str:
    epochs = f"{runner.epoch} of {runner.max_epochs or '?'} epochs"
    return f"{epochs}, {runner.iter} of {runner.max_iters or '?'} iterations"


def _best(runner: BaseRunner) -> str:
    parts = []
    for metric, best in runner.best.items():
        value = format_scalars({metric: best["value"]})
        parts.append(f"{value} in epoch {best['epoch'] + 1}")
    return ", ".join(parts)
