"""What pictures cost: the demo with its pictures, with all kinds of them at their default intervals, and without any.

    python benchmarks/pictures.py [--rounds 11] [--json FILE]

Each run is a process of its own with one thread for torch, so that the first import of what draws is counted too. The
contenders take turns in random order, and each round's times are divided by those of the run without pictures in the same
round; beside the median of these stands the ratio of the fastest runs, which other work on the machine disturbs least. CPU time
counts all threads: what drawing costs even where a free core would hide it. The time on the clock is what a user waits for.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = Path(__file__).parents[1] / "configs" / "digits.yaml"
DEFAULTS = ("VisualizationHook", "FeatureMapHook", "GradientFlowHook")

CONTENDERS = {
    "no pictures": [],
    "the demo's pictures": None,
    "default intervals, pillow": [{"type": name, **({"backend": "pillow"} if name == "VisualizationHook" else {})} for name in DEFAULTS],
    "default intervals, matplotlib": [{"type": name} for name in DEFAULTS],
    "the same and CAMHook, SaliencyHook": [{"type": name} for name in (*DEFAULTS, "CAMHook", "SaliencyHook")],
}


def train(pictures: list[dict[str, str]] | None) -> dict[str, float]:
    """Seconds of CPU and on the clock that the demo's training takes."""
    import torch

    from hookline import Runner, load_config

    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    config = load_config(CONFIG)
    if pictures is not None:
        plain = [hook for hook in config["hooks"] if hook["type"] not in DEFAULTS]
        config["hooks"] = [*plain, *pictures]
    with tempfile.TemporaryDirectory() as folder:
        config["work_dir"] = folder
        runner = Runner.from_config(config)
        cpu, clock = time.process_time(), time.perf_counter()
        runner.train()
        return {"cpu": time.process_time() - cpu, "clock": time.perf_counter() - clock}


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Medians over the rounds: seconds, and ratios to the run without pictures, with quartiles."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name in random.sample(list(CONTENDERS), len(CONTENDERS)):
            command = [sys.executable, __file__, "--one", name]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            runs[name].append(json.loads(output.splitlines()[-1]))
    results = {}
    for name, times in runs.items():
        row: dict[str, float] = {}
        for kind in ("cpu", "clock"):
            ratios = [one[kind] / base[kind] for one, base in zip(times, runs["no pictures"], strict=True)]
            low, _, high = statistics.quantiles(ratios, n=4) if rounds > 1 else (ratios[0],) * 3
            row |= {kind: statistics.median(one[kind] for one in times), f"{kind}_ratio": statistics.median(ratios)}
            row |= {f"{kind}_low": low, f"{kind}_high": high}
            row[f"{kind}_best"] = min(one[kind] for one in times) / min(one[kind] for one in runs["no pictures"])
        results[name] = row
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--one", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(train(CONTENDERS[arguments.one])))
        return
    results = measure(arguments.rounds)
    print(f"{'':36}" + "".join(f"{kind + ' s':>9}{'ratio':>8}  {'quartiles':13}{'of best':>8}" for kind in ("CPU", "clock")))
    for name, row in results.items():
        print(f"{name:36}" + "".join(_columns(row, kind) for kind in ("cpu", "clock")))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def _columns(row: dict[str, float], kind: str) -> str:
    spread = f"{row[f'{kind}_low']:.3f}–{row[f'{kind}_high']:.3f}"
    return f"{row[kind]:9.2f}{row[f'{kind}_ratio']:8.3f}  {spread:13}{row[f'{kind}_best']:8.3f}"


if __name__ == "__main__":
    main()
