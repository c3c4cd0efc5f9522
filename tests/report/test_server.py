"""The live page, with a real server, a real training and a real browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hookline.checkpoint import CheckpointStore
from hookline.report.page import write_report
from tests.report.folders import make_run
from tests.report.runs import ENDLESS, ROOT, count, start, timeline
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.slow
LONG = [
    f"training.epochs={ENDLESS}",
    "hooks.visualization=null",
    "hooks.feature_map=null",
    "hooks.gradient_flow=null",
]


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=LIMIT_S)


def watch(folder: Path, processes: list[subprocess.Popen[str]], *options: str) -> str:
    """Start `hookline watch` and return the link that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    arguments = [sys.executable, "-m", "hookline", "watch", str(folder), *options]
    process = subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    processes.append(process)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:"), process.stderr
    return address


def train(folder: Path, processes: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    process = start(folder, *LONG)
    processes.append(process)
    wait_until(lambda: last_iter(folder) > 20, "iteration 20")
    return process


def last_iter(folder: Path) -> int:
    """Return the iteration of the last complete row of a log; 0 if there is none."""
    path = folder / "log.jsonl"
    if not path.exists():
        return 0
    complete, _, _ = path.read_text().rpartition("\n")
    rows = complete.splitlines()
    return json.loads(rows[-1])["iter"] if rows else 0


def answer(address: str, body: dict | None = None, **headers: str) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address,
        data=data,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def last_point(page):
    """Return the last iteration in the chart of the loss."""
    return page.evaluate('charts.get("Curves\\nloss").plot.data[0].at(-1)')


def test_the_page_follows_a_training_and_its_button_stops_it_with_a_checkpoint(
    tmp_path, processes, open_page
):
    folder = tmp_path / "runs/long"
    training = train(folder, processes)
    page = open_page(watch(tmp_path / "runs", processes))
    page.wait_for_selector('[data-chart="loss"] canvas')
    for _ in range(3):
        wanted = last_iter(folder)
        wait_until(lambda: last_point(page) >= wanted, "the point in the chart")  # noqa: B023
        assert page.locator("#runs .badge").inner_text() == "running"
        shown = last_iter(folder)
        wait_until(lambda: last_iter(folder) > shown, "a new row in the log")  # noqa: B023
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("button.stop").click()
    assert training.wait(timeout=LIMIT_S) == 0
    rows = timeline(folder)
    assert [row["what"] for row in rows if row["what"] in ("requested", "stop")] == [
        "requested",
        "stop",
    ]
    assert rows[-1]["finished"] is False
    newest = CheckpointStore(folder).latest()
    assert newest is not None
    assert newest.step == rows[-1]["iter"]
    wait_until(lambda: page.locator("#runs .badge").text_content() == "stopped", "the badge")
    assert page.complaints == []


def test_the_other_button_saves_and_training_continues(tmp_path, processes, open_page):
    folder = tmp_path / "long"
    training = train(folder, processes)
    page = open_page(watch(folder, processes))
    page.locator("button.save").click()
    wait_until(lambda: count(folder, "requested"), "the request")
    (request,) = [row for row in timeline(folder) if row["what"] == "requested"]
    wait_until(
        lambda: any(entry.step >= request["iter"] for entry in CheckpointStore(folder).entries()),
        "the checkpoint",
    )
    assert training.poll() is None
    training.send_signal(signal.SIGINT)
    assert training.wait(timeout=LIMIT_S) == 130


def test_requests_without_the_token_or_from_other_pages_are_rejected(tmp_path, processes):
    train(tmp_path / "long", processes)
    address = watch(tmp_path, processes)
    root, token = address.rstrip("/").rsplit("/", 1)
    assert len(token) >= 32
    host = root.removeprefix("http://")
    request = {"run": "long", "action": "stop"}
    for path in (
        "/",
        "/api/runs",
        "/api/data?run=long",
        f"/{token[:-1]}/",
        f"/{token}x/api/runs",
        "//api/runs",
    ):
        assert answer(root + path)[0] == 403, path
    assert answer(f"{root}/api/control", request)[0] == 403
    for origin in ("http://evil.example", "null", f"https://{host}", "http://127.0.0.1:1"):
        assert answer(f"{address}api/control", request, Origin=origin)[0] == 403, origin
        assert answer(f"{address}api/runs", Origin=origin)[0] == 403, origin
    assert answer(f"{address}api/control", request, Sec_Fetch_Site="cross-site")[0] == 403
    for other in (
        "evil.example",
        f"evil.example:{host.split(':')[1]}",
        "127.0.0.1",
        f"{host}.evil.example",
    ):
        assert answer(f"{address}api/runs", Host=other)[0] == 403, other
    status, text = answer(f"{address}api/runs")
    assert (status, json.loads(text)["runs"][0]["state"]) == (200, "running")
    assert not (tmp_path / "long/.hookline.control").exists()
    for path in (
        "picture?run=long&series=..&step=1",
        "picture?run=../x&series=a&step=1",
        "picture?run=long&series=a&step=x",
    ):
        assert answer(address + path)[0] == 404, path
    for wrong in (
        {"run": "../long", "action": "stop"},
        {"run": "long", "action": "rm"},
        {"run": "long"},
        {},
    ):
        assert answer(f"{address}api/control", wrong)[0] == 400, wrong


def test_a_read_only_page_has_no_buttons_and_rejects_requests(tmp_path, processes, open_page):
    train(tmp_path / "long", processes)
    address = watch(tmp_path, processes, "--read-only")
    assert answer(f"{address}api/control", {"run": "long", "action": "stop"})[0] == 403
    page = open_page(address)
    page.wait_for_selector('[data-chart="loss"] canvas')
    assert page.locator("#runs button").count() == 0
    assert not (tmp_path / "long/.hookline.control").exists()


def test_the_list_of_runs_is_aligned_and_shows_the_metrics_of_ended_runs(
    tmp_path, processes, open_page
):
    row = {"mode": "val", "iter": 60, "epoch": 3, "wall_time": 1e9, "step": 3, "accuracy": 0.75}
    begin = {"what": "start", "time": 1e9, "iter": 0, "epoch": 0}
    end = {"what": "stop", "time": 1e9 + 9, "iter": 60, "epoch": 3, "finished": True}
    for name in ("a", "a_run_with_a_long_name"):
        make_run(tmp_path / name, rows=[row], timeline=[begin, end])
    make_run(tmp_path / "failed", rows=[row], timeline=[begin, {**end, "what": "fail"}])
    page = open_page(watch(tmp_path, processes))
    page.wait_for_selector("#runs .badge")
    badges = [badge.bounding_box() for badge in page.locator("#runs .badge").all()]
    assert len(badges) == 3
    assert len({(badge["x"], badge["width"]) for badge in badges}) == 1
    assert "accuracy 0.75" in page.locator("#runs").inner_text()
    page.set_viewport_size({"width": 390, "height": 800})
    # Charts follow the width in the next frame.
    wait_until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 390, "the layout")
    assert page.complaints == []


EVIL = "<img src=x onerror=document.title='hit'>"


CLOSING = f"</script><script>document.title='hit'</script>{EVIL}"


def evil_run(folder: Path) -> Path:
    """Make a run with markup in all its names and texts."""
    rows = []
    for step in (1, 2, 3):
        for mode in ("train", "val"):
            row = {"mode": mode, "iter": step, "epoch": 1, "wall_time": 1e9 + step, "loss": 1.0}
            rows.append({**row, EVIL: 1.0 / step})
    about = {"host": EVIL, "model": EVIL, "versions": {EVIL: EVIL}, "cpu": EVIL}
    git = {"commit": EVIL, "branch": EVIL, "changed": 1, "files": [EVIL]}
    events = [
        {"what": "start", "time": 1e9, "iter": 0, "epoch": 0, **about},
        {"what": "git", "time": 1e9, **git},
        {"what": EVIL, "time": 1e9 + 1, "iter": 1, "epoch": 0},
        {"what": "fail", "time": 1e9 + 3, "iter": 3, "epoch": 0, "error": CLOSING},
    ]
    config = yaml.safe_dump({"work_dir": CLOSING, EVIL: 1})
    make_run(folder, config, rows, events)
    (folder / "hookline.log").write_text(f"2026-01-01 00:00:00,000 WARNING </pre>{EVIL}\n")
    hook = {"hook": EVIL, "site": EVIL, "seconds_per_call": 1, "longest": 1, "seconds": 1}
    costs = {
        "phases": {EVIL: 1.0},
        "seams": {EVIL: {"count": 1, "seconds": 1}},
        "seconds_per_iteration": 1.0,
        "hooks": [{**hook, "share": 0.5}],
    }
    (folder / "hook_costs.json").write_text(json.dumps(costs))
    return folder


def test_names_with_markup_are_shown_as_text(tmp_path, processes, open_page):
    name = "<b onclick=1>run<"
    folder = evil_run(tmp_path / "runs" / name)
    target = write_report([folder, evil_run(tmp_path / "other" / "x")], tmp_path / "report.html")
    live = watch(tmp_path / "runs", processes)
    for address in (f"file://{target}", live):
        page = open_page(address)
        page.wait_for_selector('[data-chart="loss"] canvas')
        assert "hit" not in page.title()
        assert page.locator("main img, main b, main script").count() == 0
        text = page.locator("main").inner_text()
        assert name in text
        assert text.count(EVIL) > 8
        assert page.complaints == []
