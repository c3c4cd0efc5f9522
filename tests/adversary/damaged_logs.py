"""Files of a run that are damaged at random, then resumed from and shown."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

from hookline.errors import HooklineError
from hookline.events.csv import CSVWriter
from hookline.events.jsonl import JSONLinesWriter
from hookline.events.read import read_curves
from hookline.report import index
from hookline.report.collect import RunReader
from hookline.report.page import render_page

NAMES = ("loss", "a\u2028b", "=x", "n\x1b[2J", "x" * 300, "\ud800", "mode")
VALUES = ("1", "1e999", "NaN", '"nan"', "[" * 5000, "1" * 5000, "true", "null", '"\\u2028"', "-0")


def run_case(seed: int) -> None:
    """Damage the logs of one run, then cut, extend, index and show them."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, rng)
        for path in sorted(folder.iterdir()):
            _damage(path, rng)
        _resume(folder, rng.randrange(60))
        read_curves(folder)
        minimum, index.MIN_BYTES = index.MIN_BYTES, 0
        try:
            RunReader(folder).update_index()
        finally:
            index.MIN_BYTES = minimum
        _damage(folder / "log.index", rng)
        data = RunReader(folder).read()
        render_page({"runs": [data], "differences": []}, "fuzz")


def _write(folder: Path, rng: random.Random) -> None:
    log = JSONLinesWriter(folder / "log.jsonl")
    table = CSVWriter(folder / "metrics.csv")
    for step in range(rng.randrange(60)):
        scalars = {rng.choice(NAMES[:5]): rng.random() for _ in range(3)}
        log.write_scalars("train", scalars, iter=step, epoch=1)
        table.write_scalars("train", scalars, iter=step, epoch=1)
    log.close()
    rows = [{"what": "start", "time": 1.0, "iter": 0}, {"what": "stop", "time": 2.0, "iter": 5}]
    (folder / "timeline.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "hookline.log").write_text("2026-01-01 00:00:00,000 WARNING x\nmore\n" * 5)


def _damage(path: Path, rng: random.Random) -> None:
    """Flip bits, cut, repeat, or insert hostile lines."""
    if not path.exists():
        return
    data = bytearray(path.read_bytes())
    for _ in range(rng.randrange(4)):
        where = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0 and where < len(data):
            data[where] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[where:]
        elif kind == 2:
            data[where:where] = data[: rng.randrange(200)]
        else:
            value, step = rng.choice(VALUES), rng.choice(VALUES)
            line = f'\n{{"mode": "train", "iter": {step}, "loss": {value}}}\n'
            data[where:where] = line.encode()
    path.write_bytes(data)


def _resume(folder: Path, iteration: int) -> None:
    for make, name in ((JSONLinesWriter, "log.jsonl"), (CSVWriter, "metrics.csv")):
        writer = make(folder / name)
        writer.cut_after(iteration)
        writer.write_scalars("train", {"loss": 1.0}, iter=iteration + 1, epoch=1)
        writer.close()
    lines = (folder / "log.jsonl").read_bytes().split(b"\n")
    last = json.loads(lines[-2])
    if last["iter"] != iteration + 1 or lines[-1]:
        raise HooklineError(f"the last row is {last}, not that of iteration {iteration + 1}")
