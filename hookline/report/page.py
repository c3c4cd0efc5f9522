"""The page: one file with everything in it, data as data and never as markup."""

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
from hookline.report.collect import collect

SCRIPTS = ("dom.js", "charts.js", "sections.js", "page.js")

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
    """Make the page of these runs; it is there whole or not at all."""
    data = collect(folders)
    text = page(data, title=", ".join(run["name"] for run in data["runs"]))
    replace_text(target, text)
    return target


def page(data: dict[str, Any], title: str) -> str:
    """The HTML of a page with these data; with `live` in them it asks its server for news."""
    library, code = _static("uPlot.js"), "\n".join(map(_static, SCRIPTS))
    return _PAGE.format(
        policy=html.escape(policy("live" in data)),
        title=html.escape(f"{title} · Hookline" if title else "Hookline"),
        style=_static("uPlot.css") + _static("report.css"),
        plain=_without_script(data["runs"]),
        data=as_script_data(data),
        library=library,
        code=code,
    )


def _without_script(runs: list[dict[str, Any]]) -> str:
    """The main facts of runs, for readers whose browser runs no script: the summary, and which checkpoints to take."""
    parts = []
    for run in runs:
        rows = [*run["summary"], *(("checkpoint", text) for text in map(_checkpoint, run["checkpoints"]) if text)]
        facts = "".join(f"<dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd>" for label, text in rows)
        parts.append(f"<h1>{html.escape(run['name'])}</h1><section><dl>{facts}</dl></section>")
    parts.append("<p>Curves, pictures and all else need JavaScript, which is off here.</p>")
    return "\n".join(parts).encode("utf-8", errors="replace").decode()


def _checkpoint(entry: dict[str, Any]) -> str:
    """The last and the best ones in words; nothing of others."""
    names = [name for name in entry["names"] if name.startswith(("best_", "last."))]
    metrics = "".join(
        f", {name} {value:.4g}" if isinstance(value, float) else f", {name} {value}" for name, value in entry["metrics"].items()
    )
    return f"{', '.join(names)} (iteration {entry['iter']}{metrics})" if names else ""


def policy(live: bool) -> str:
    """What the page may do: run the two scripts that are in it, and nothing else."""
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in (_static("uPlot.js"), "\n".join(map(_static, SCRIPTS))))
    own = " 'self'" if live else ""
    talk = " connect-src 'self';" if live else ""
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:{own};{talk} base-uri 'none'; form-action 'none'"
    )


def as_script_data(value: Any) -> str:
    """JSON that nothing in it can end the script element early, whatever names runs and metrics have."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", errors="replace").decode()  # a lone surrogate is no text


@cache
def _static(name: str) -> str:
    return files("hookline.report").joinpath("static", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
