"""What pictures cost the demo: its command with the pictures it draws, with all kinds at their default intervals, and without any.

    python benchmarks/pictures.py [--rounds 21] [--json FILE]

A run is the whole command, `hookline train configs/digits.yaml`, as a user starts it: from the first import to the last picture, with as
many threads as torch takes. The contenders take turns in random order, and each round's times are divided by those of the run without
pictures in the same round. The time on the clock is what a user waits for; CPU time counts all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

CONFIG = Path(__file__).parents[1] / "configs" / "digits.yaml"
DEFAULTS = ("VisualizationHook", "FeatureMapHook", "GradientFlowHook")

CONTENDERS: dict[str, list[dict[str, str]] | None] = {
    "no pictures": [],
    "the demo's own": None,
    "default intervals, pillow": [{"type": name, **({"backend": "pillow"} if name == "VisualizationHook" else {})} for name in DEFAULTS],
    "default intervals, matplotlib": [{"type": name} for name in DEFAULTS],
    "and CAMHook, SaliencyHook": [{"type": name} for name in (*DEFAULTS, "CAMHook", "SaliencyHook")],  # captum's import alone is 0.4 s
}


def train(pictures: list[dict[str, str]] | None) -> dict[str, float]:
    """Seconds on the clock and of CPU that the demo takes."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    if pictures is not None:
        config["hooks"] = [hook for hook in config["hooks"] if hook["type"] not in DEFAULTS] + pictures
    config["optimizer"]["lr"] = float(config["optimizer"]["lr"])  # plain YAML reads 1e-3 as a text
    with tempfile.TemporaryDirectory() as folder:
        config["work_dir"] = f"{folder}/run"
        path = Path(folder) / "digits.yaml"
        path.write_text(yaml.safe_dump(config))
        began = time.perf_counter()
        command = [sys.executable, "-m", "hookline", "train", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise RuntimeError(f"the demo failed: {' '.join(command)}")
        return {"clock": time.perf_counter() - began, "cpu": used.ru_utime + used.ru_stime}


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Medians over the rounds: seconds, and ratios to the run without pictures, with quartiles."""
    train([])  # compiles what was never imported
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name in random.sample(list(CONTENDERS), len(CONTENDERS)):
            runs[name].append(train(CONTENDERS[name]))
    return {name: _compared(times, runs["no pictures"]) for name, times in runs.items()}


def _compared(times: list[dict[str, float]], base: list[dict[str, float]]) -> dict[str, float]:
    row: dict[str, float] = {}
    for kind in ("clock", "cpu"):
        ratios = [one[kind] / other[kind] for one, other in zip(times, base, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
        row |= {kind: statistics.median(one[kind] for one in times), f"{kind}_ratio": statistics.median(ratios)}
        row |= {f"{kind}_low": low, f"{kind}_high": high}
        row[f"{kind}_best"] = min(one[kind] for one in times) / min(one[kind] for one in base)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    results = measure(arguments.rounds)
    print(f"{'':32}" + "".join(f"{kind + ' s':>9}{'ratio':>8}  {'quartiles':13}{'of best':>8}" for kind in ("clock", "CPU")))
    for name, row in results.items():
        print(f"{name:32}" + "".join(_columns(row, kind) for kind in ("clock", "cpu")))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def _columns(row: dict[str, float], kind: str) -> str:
    spread = f"{row[f'{kind}_low']:.3f}–{row[f'{kind}_high']:.3f}"
    return f"{row[kind]:9.2f}{row[f'{kind}_ratio']:8.3f}  {spread:13}{row[f'{kind}_best']:8.3f}"


if __name__ == "__main__":
    main()
