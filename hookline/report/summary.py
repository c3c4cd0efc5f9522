"""The summary of a run: results, duration, reason of the end, and environment."""

from __future__ import annotations

import time
from typing import Any

from hookline.duration import format_duration
from hookline.report.last_rows import describe_time_left

MAX_METRICS = 6
MAX_FILES = 5

Data = dict[str, Any]


def summarize(data: Data, about: Data, git: Data) -> list[tuple[str, str]]:
    """Return rows of a label and a text; facts that are not known are left out.

    Args:
        data: The data of the page.
        about: The first row of the last process in the timeline.
        git: The row about the repository in the timeline.
    """
    versions = about.get("versions")
    if not isinstance(versions, dict):
        versions = {}
    seed = about.get("seed")
    rows = [
        ("state", _state(data)),
        ("best", _best(data["best"])),
        ("last", _last(data["last"])),
        ("progress", _progress(data)),
        ("duration", _duration(data["sessions"])),
        ("began", _clock(data["sessions"][0]["began"]) if data["sessions"] else ""),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("machine", _machine(about)),
        ("code", _code(git)),
        ("seed", "" if seed is None else str(seed)),
        ("deterministic", "yes" if about.get("deterministic") is True else ""),
        ("model", str(about.get("model", ""))),
        ("folder", data["folder"]),
        ("mirror", _mirror(data["mirror"])),
    ]
    return [(label, text) for label, text in rows if text]


def _state(data: Data) -> str:
    state = data["state"]
    return f"{state['name']}: {state['why']}" if state["why"] else str(state["name"])


def _mirror(status: Data) -> str:
    """Describe the copy in object storage, and the checkpoints that it does not have."""
    if not status.get("url"):
        return ""
    text = str(status["url"])
    names = status.get("only_local")
    if isinstance(names, list) and names:
        text += f"; only local: {', '.join(map(str, names[:MAX_FILES]))}"
    if status.get("error"):
        text += f"; {status.get('failures')} failures, the last one: {status['error']}"
    return text


def _best(best: dict[str, Data]) -> str:
    parts = []
    for name, each in list(best.items())[:MAX_METRICS]:
        parts.append(f"{name} {each['value']:.4g} (iteration {each['iter']})")
    return ", ".join(parts)


def _last(last: dict[str, float]) -> str:
    """Return the last metrics of validation and the last training loss."""
    names = [name for name in last if name.startswith("val/")]
    if "train/loss" in last:
        names.append("train/loss")
    return ", ".join(f"{name} {last[name]:.4g}" for name in names[:MAX_METRICS])


def _progress(data: Data) -> str:
    parts = [
        _count("epoch", data["epoch"], data["max_epochs"]),
        _count("iteration", data["iter"], data["max_iters"]),
    ]
    eta = data["last"].get("train/eta")
    if data["state"]["name"] == "running" and eta is not None:
        parts.append(describe_time_left(eta))
    return ", ".join(part for part in parts if part)


def _count(unit: str, number: int, limit: int | None) -> str:
    return f"{unit} {number} of {limit}" if limit else f"{unit} {number}"


def _duration(sessions: list[Data]) -> str:
    if not sessions:
        return ""
    text = format_duration(sum(session["ended"] - session["began"] for session in sessions))
    if len(sessions) > 1:
        whole = format_duration(sessions[-1]["ended"] - sessions[0]["began"])
        text += f" in {len(sessions)} sessions, over {whole}"
    return text


def _machine(about: Data) -> str:
    if "host" not in about:
        return ""
    gpus = about.get("gpus") or []
    device = ", ".join(map(str, gpus)) if gpus else f"device {about.get('device', '?')}"
    parts = [
        str(about["host"]),
        str(about.get("system", "")),
        f"{about.get('cpu', '')} × {about.get('cores', '?')}",
        f"{about.get('memory_gb', '?')} GB",
        device,
    ]
    return " · ".join(part for part in parts if part)


def _code(git: Data) -> str:
    if not git.get("commit"):
        return ""
    commit = f"{git.get('branch', '')} {str(git['commit'])[:12]}"
    changed = git.get("changed") or 0
    if not changed:
        return f"{commit}, without changes"
    files = [str(name) for name in git.get("files") or []][:MAX_FILES]
    if changed > MAX_FILES:
        files.append("…")
    plural = "s" if changed != 1 else ""
    return f"{commit}, with {changed} changed file{plural}: {', '.join(files)}"


def _clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
