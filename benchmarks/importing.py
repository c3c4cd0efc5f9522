"""Measure the CPU time and memory of importing Hookline, against `import torch`.

    python benchmarks/importing.py [--rounds 9] [--json FILE]

Each import has a new process, and the contenders take turns in random order. Other frameworks are
measured if they are installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

BASE = "import torch"
OURS = ["import hookline", "import torch, hookline", "from hookline import Runner"]
PEERS = {
    "accelerate": "from accelerate import Accelerator",
    "skorch": "from skorch import NeuralNet",
    "ignite": "import ignite.engine, ignite.handlers",
    "fastai": "from fastai.learner import Learner",
    "mmengine": "from mmengine.runner import Runner",
    "transformers": "from transformers import Trainer",
    "lightning": "from lightning.pytorch import Trainer",
    "keras": "import keras",
}
CHILD = """
import os, resource, time
before = time.process_time()
{statement}
print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def run_import(statement: str) -> tuple[float, float]:
    """Return the CPU seconds and the peak memory in MB of an import."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": "torch",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    code = CHILD.format(statement=statement)
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    seconds, megabytes = run.stdout.strip().splitlines()[-1].split()
    return float(seconds), float(megabytes)


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Return medians, their ratios to those of torch, and quartiles of the ratios by round."""
    peers = [
        statement
        for package, statement in PEERS.items()
        if importlib.util.find_spec(package) is not None
    ]
    statements = [BASE, *OURS, *peers]
    times: dict[str, list[float]] = {statement: [] for statement in statements}
    memory: dict[str, list[float]] = {statement: [] for statement in statements}
    for turn in range(rounds + 1):
        for statement in random.sample(statements, len(statements)):
            seconds, megabytes = run_import(statement)
            if turn:  # the first round fills the disk's cache
                times[statement].append(seconds)
                memory[statement].append(megabytes)
    base_time = statistics.median(times[BASE])
    base_memory = statistics.median(memory[BASE])
    rows = {}
    for statement in statements:
        low, _, high = statistics.quantiles(
            [one / base for one, base in zip(times[statement], times[BASE], strict=True)], n=4
        )
        seconds = statistics.median(times[statement])
        megabytes = statistics.median(memory[statement])
        rows[statement] = {
            "seconds": seconds,
            "ratio": seconds / base_time,
            "low": low,
            "high": high,
        }
        rows[statement] |= {"mb": megabytes, "mb_ratio": megabytes / base_memory}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    results = measure(arguments.rounds)
    print(f"{'':44}{'CPU s':>8}{'ratio':>8}   quartiles{'MB':>10}{'ratio':>8}")
    for name, row in results.items():
        spread = f"{row['low']:.3f}–{row['high']:.3f}"
        time_cells = f"{row['seconds']:8.2f}{row['ratio']:8.3f}   {spread}"
        print(f"{name:44}{time_cells}{row['mb']:8.0f}{row['mb_ratio']:8.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
