"""Cost of pictures: the demo with its pictures, with all kinds at default intervals, and without.

    python benchmarks/pictures.py [--rounds 21] [--json FILE]

A run is the whole command `hookline train hookline/configs/digits.yaml`, from the first import to the last
picture, with the default number of threads. The contenders take turns in random order; the times of
a round are divided by those of the run without pictures in the same round. Wall-clock time is what
a user waits for; CPU time counts all threads.
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

CONFIG = Path(__file__).parents[1] / "hookline" / "configs" / "digits.yaml"
PICTURE_HOOKS = ("VisualizationHook", "FeatureMapHook", "GradientFlowHook")
BASELINE = "no pictures"
CLOCKS = ("clock", "cpu")

Hooks = list[dict[str, Any]]
Times = dict[str, float]

MATPLOTLIB: Hooks = [
    {"type": "VisualizationHook", "backend": "matplotlib"},
    {"type": "FeatureMapHook"},
    {"type": "GradientFlowHook"},
]
PILLOW: Hooks = [
    {"type": "VisualizationHook", "backend": "pillow"},
    {"type": "FeatureMapHook"},
    {"type": "GradientFlowHook"},
]

# The picture hooks of each contender; None keeps those of the config.
CONTENDERS: dict[str, Hooks | None] = {
    BASELINE: [],
    "the demo's own": None,
    "default intervals, pillow": PILLOW,
    "default intervals, matplotlib": MATPLOTLIB,
    # The import of captum alone takes 0.4 s.
    "and CAMHook, SaliencyHook": [*MATPLOTLIB, {"type": "CAMHook"}, {"type": "SaliencyHook"}],
}


def train(picture_hooks: Hooks | None) -> Times:
    """Run the demo and return its wall-clock and CPU time in seconds."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text())
    if picture_hooks is not None:
        others = [hook for hook in config["hooks"] if hook["type"] not in PICTURE_HOOKS]
        config["hooks"] = others + picture_hooks
    config["optimizer"]["lr"] = float(config["optimizer"]["lr"])  # PyYAML reads 1e-3 as a string
    with tempfile.TemporaryDirectory() as folder:
        config["work_dir"] = f"{folder}/run"
        path = Path(folder) / "digits.yaml"
        path.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "hookline", "train", str(path)]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        clock = time.perf_counter() - start
    if status:
        raise RuntimeError(f"the demo failed: {' '.join(command)}")
    return {"clock": clock, "cpu": usage.ru_utime + usage.ru_stime}


def measure(rounds: int) -> dict[str, Times]:
    """Run all contenders and compare them with the run without pictures."""
    train([])  # compiles the bytecode of all modules
    runs: dict[str, list[Times]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name in random.sample(list(CONTENDERS), len(CONTENDERS)):
            runs[name].append(train(CONTENDERS[name]))
    return {name: compare(times, runs[BASELINE]) for name, times in runs.items()}


def compare(runs: list[Times], baseline: list[Times]) -> Times:
    """Return medians of the times, and medians and quartiles of the ratios to the baseline."""
    row: Times = {}
    for clock in CLOCKS:
        times = [run[clock] for run in runs]
        base_times = [run[clock] for run in baseline]
        ratios = [one / other for one, other in zip(times, base_times, strict=True)]
        low = high = ratios[0]
        if len(ratios) > 1:
            low, _, high = statistics.quantiles(ratios, n=4)
        row[clock] = statistics.median(times)
        row[f"{clock}_ratio"] = statistics.median(ratios)
        row[f"{clock}_low"] = low
        row[f"{clock}_high"] = high
        row[f"{clock}_best"] = min(times) / min(base_times)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    results = measure(arguments.rounds)
    header = f"{'':32}"
    for clock in CLOCKS:
        header += f"{clock + ' s':>9}{'ratio':>8}  {'quartiles':13}{'of best':>8}"
    print(header)
    for name, row in results.items():
        line = f"{name:32}"
        for clock in CLOCKS:
            quartiles = f"{row[f'{clock}_low']:.3f}–{row[f'{clock}_high']:.3f}"
            line += f"{row[clock]:9.2f}{row[f'{clock}_ratio']:8.3f}  {quartiles:13}"
            line += f"{row[f'{clock}_best']:8.3f}"
        print(line)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
