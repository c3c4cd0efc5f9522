"""The report page: one file with everything in it. Data are embedded as JSON, never as markup."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hookline.checkpoint.files import replace_text
from hookline.checkpoint.names import is_reserved_name
from hookline.report.collect import collect

LIBRARY = ("uPlot.js",)
SCRIPTS = ("dom.js", "charts.js", "sections.js", "page.js")
STYLES = ("uPlot.css", "report.css")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="page"><noscript>{plain}</noscript></main>
<script type="application/json" id="data">{data}</script>
<script>{library}</script>
<script>{code}</script>
</body>
</html>
"""


def write_report(folders: Sequence[str | Path], target: Path) -> Path:
    """Write the page of these runs in one step, and return its path."""
    data = collect(folders)
    title = ", ".join(run["name"] for run in data["runs"])
    replace_text(target, render_page(data, title))
    return target


def render_page(data: dict[str, Any], title: str) -> str:
    """Return the HTML of a page. With a key `live` in the data it polls its server for updates."""
    return _PAGE.format(
        policy=html.escape(content_policy(live="live" in data)),
        title=html.escape(f"{title} · Hookline" if title else "Hookline"),
        style=_static(STYLES),
        plain=_without_script(data["runs"]),
        data=encode_for_script(data),
        library=_static(LIBRARY),
        code=_static(SCRIPTS),
    )


def content_policy(live: bool) -> str:
    """Return the Content-Security-Policy: the page may run its two scripts and nothing else."""
    hashes = f"'sha256-{_digest(_static(LIBRARY))}' 'sha256-{_digest(_static(SCRIPTS))}'"
    parts = [
        "default-src 'none'",
        f"script-src {hashes}",
        "style-src 'unsafe-inline'",
        "img-src data: 'self'" if live else "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if live:
        parts.append("connect-src 'self'")
    return "; ".join(parts)


def encode_for_script(value: Any) -> str:
    """Return JSON in which no text can end the script element around it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _without_surrogates(text)


def _without_script(runs: list[dict[str, Any]]) -> str:
    """Return the summaries and the best checkpoints, for browsers that run no scripts."""
    parts = []
    for run in runs:
        rows = list(run["summary"])
        for entry in run["checkpoints"]:
            if any(is_reserved_name(name) for name in entry["names"]):
                rows.append(("checkpoint", _describe_checkpoint(entry)))
        facts = ""
        for label, text in rows:
            facts += f"<dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd>"
        parts.append(f"<h1>{html.escape(run['name'])}</h1><section><dl>{facts}</dl></section>")
    parts.append("<p>Curves, pictures and further sections need JavaScript.</p>")
    return _without_surrogates("\n".join(parts))


def _describe_checkpoint(entry: dict[str, Any]) -> str:
    names = [name for name in entry["names"] if is_reserved_name(name)]
    facts = [f"iteration {entry['iter']}"]
    for name, value in entry["metrics"].items():
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        facts.append(f"{name} {text}")
    return f"{', '.join(names)} ({', '.join(facts)})"


def _without_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which cannot be encoded."""
    return text.encode("utf-8", errors="replace").decode()


@cache
def _static(names: tuple[str, ...]) -> str:
    folder = files("hookline.report") / "static"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
