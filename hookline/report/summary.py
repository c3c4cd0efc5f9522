"""The first lines of a report: what came of the run, how long it took, why it ended, on what it ran."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

MOST_METRICS = 6
MOST_FILES = 5


def summary(data: dict[str, Any], about: dict[str, Any], git: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows of a label and a text, of what is known."""
    rows = [
        ("state", _state(data)),
        ("best", _best(data["best"])),
        ("last", _last(data["last"])),
        ("progress", _progress(data)),
        ("duration", _duration(data)),
        ("began", _clock(data["sessions"][0]["began"]) if data["sessions"] else ""),
        ("versions", ", ".join(f"{name} {version}" for name, version in _items(about.get("versions")))),
        ("machine", _machine(about)),
        ("code", _code(git)),
        ("seed", "" if about.get("seed") is None else str(about["seed"])),
        ("model", str(about.get("model", ""))),
        ("folder", data["folder"]),
    ]
    return [(label, text) for label, text in rows if text]


def readable_seconds(seconds: float) -> str:
    """`12.3 s`, `4 min 5 s` or `2 days, 3:04:05`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return str(timedelta(seconds=int(seconds)))


def _state(data: dict[str, Any]) -> str:
    state = data["state"]
    return f"{state['name']}: {state['why']}" if state["why"] else str(state["name"])


def _best(best: dict[str, dict[str, Any]]) -> str:
    return ", ".join(f"{name} {each['value']:.4g} (iteration {each['iter']})" for name, each in list(best.items())[:MOST_METRICS])


def _last(last: dict[str, float]) -> str:
    wanted = [name for name in last if name.startswith("val/")] or [name for name in last if name == "train/loss"]
    wanted += [name for name in ("train/loss",) if name in last and name not in wanted]
    return ", ".join(f"{name} {last[name]:.4g}" for name in wanted[:MOST_METRICS])


def _progress(data: dict[str, Any]) -> str:
    epochs = f"epoch {data['epoch']}" + (f" of {data['max_epochs']}" if data["max_epochs"] else "")
    iterations = f"iteration {data['iter']}" + (f" of {data['max_iters']}" if data["max_iters"] else "")
    return f"{epochs}, {iterations}"


def _duration(data: dict[str, Any]) -> str:
    parts = data["sessions"]
    if not parts:
        return ""
    worked = sum(part["ended"] - part["began"] for part in parts)
    text = readable_seconds(worked)
    if len(parts) > 1:
        text += f" in {len(parts)} pieces, over {readable_seconds(parts[-1]['ended'] - parts[0]['began'])}"
    return text


def _machine(about: dict[str, Any]) -> str:
    if "host" not in about:
        return ""
    gpus = about.get("gpus") or []
    parts = [str(about["host"]), str(about.get("system", "")), f"{about.get('cpu', '')} × {about.get('cores', '?')}"]
    parts += [f"{about.get('memory_gb', '?')} GB", ", ".join(map(str, gpus)) if gpus else f"device {about.get('device', '?')}"]
    return " · ".join(part for part in parts if part)


def _code(git: dict[str, Any]) -> str:
    if not git.get("commit"):
        return ""
    changed = git.get("changed") or 0
    listed = [str(name) for name in git.get("files") or []]
    files = ", ".join([*listed[:MOST_FILES], *(["…"] if changed > MOST_FILES else [])])
    state = f"with {changed} changed file{'s' if changed != 1 else ''}: {files}" if changed else "without changes"
    return f"{git.get('branch', '')} {str(git['commit'])[:12]}, {state}"


def _clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _items(value: Any) -> list[tuple[str, str]]:
    return [(str(key), str(item)) for key, item in value.items()] if isinstance(value, dict) else []
