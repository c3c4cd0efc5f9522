"""Compare the ports in examples/ports with their plain loops: time per iteration and lines.

    python benchmarks/ports.py [NAME …] [--rounds 5] [--json FILE]

Plain loop and port run in turns in one process, on one thread. The time of an iteration is the CPU
time of the thread between its first optimizer step and that of the next iteration; a run counts
with its median. The ratio is the median over the rounds.

The ports save only at the end, as the plain loops do not save at all: some of their epochs have one
iteration. `--save` keeps the checkpoint of each epoch.

Lines are those of the functions and classes that only one of the two forms uses.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import io
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
FOLDER = ROOT / "examples" / "ports"
# The length of a run, and the optimizer steps of an iteration. LBFGS makes one step of many
# evaluations.
RUNS: dict[str, tuple[dict[str, int], int]] = {
    "adder": ({"iters": 60, "interval": 100}, 1),
    "dcgan": ({"epochs": 3}, 2),
    "diffusion": ({"epochs": 20}, 1),
    "distillation": ({"epochs": 8}, 1),
    "forward_forward": ({"epochs": 6}, 2),
    "k_fold": ({"epochs": 3}, 1),
    "moco": ({"epochs": 5}, 1),
    "reinforce": ({"iters": 30}, 1),
    "sequence_lbfgs": ({"epochs": 12}, 1),
    "word_language_model": ({"epochs": 2}, 1),
}


def time_iteration(run: Callable[[], Any], steps: int) -> float:
    """Return the median of the milliseconds between two iterations of a run."""
    stamps: list[float] = []
    handle = register_optimizer_step_post_hook(lambda *_: stamps.append(time.thread_time()))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            run()
    finally:
        handle.remove()
    starts = stamps[::steps]
    return 1e3 * statistics.median(after - before for before, after in pairwise(starts))


def compare(name: str, rounds: int, hooks: Sequence[BaseHook]) -> dict[str, float]:
    """Return the milliseconds per iteration of both forms, and the median of their ratios."""
    module = importlib.import_module(f"examples.ports.{name}")
    length, steps = RUNS[name]
    plain, ported = [], []
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            forms = [
                (plain, lambda: module.plain(**length)),
                (ported, lambda folder=folder: module.ported(folder, hooks=hooks, **length)),
            ]
            for times, run in forms if number % 2 else reversed(forms):
                times.append(time_iteration(run, steps))
    plain, ported = plain[1:], ported[1:]  # The first round warms up.
    ratios = [ours / theirs for ours, theirs in zip(ported, plain, strict=True)]
    return {
        "plain_ms": statistics.median(plain),
        "ported_ms": statistics.median(ported),
        "ratio": statistics.median(ratios),
        "low": min(ratios),
        "high": max(ratios),
    }


def count_lines(file: Path) -> dict[str, int]:
    """Return the lines of code that only the plain loop uses, and those of only the port."""
    source = file.read_text(encoding="utf-8")
    parts = {
        node.name: node
        for node in ast.parse(source).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    plain = set(_reachable("plain", parts))
    ported = set(_reachable("ported", parts))
    lines = source.splitlines()
    return {
        "plain_lines": sum(_length(parts[name], lines) for name in plain - ported),
        "ported_lines": sum(_length(parts[name], lines) for name in ported - plain),
    }


def _reachable(name: str, parts: dict[str, Any]) -> Iterator[str]:
    """Yield the names of all functions and classes that one of them uses."""
    seen = {name}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        yield current
        for node in ast.walk(parts[current]):
            if isinstance(node, ast.Name) and node.id in parts and node.id not in seen:
                seen.add(node.id)
                waiting.append(node.id)


def _length(node: ast.FunctionDef | ast.ClassDef, lines: list[str]) -> int:
    """Return the lines of a function or class that are not empty."""
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return sum(bool(line.strip()) for line in lines[first - 1 : node.end_lineno])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="the ports; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="save after each epoch")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").setLevel(logging.ERROR)
    print(f"{'':21}{'lines':>11}{'plain':>10}{'ported':>10}{'ratio':>8}   range")
    hooks = [] if arguments.save else [CheckpointHook(interval=-1)]
    results = {}
    for name in arguments.names or RUNS:
        row = {**count_lines(FOLDER / f"{name}.py"), **compare(name, arguments.rounds, hooks)}
        results[name] = row
        lines = f"{row['plain_lines']} → {row['ported_lines']}"
        print(
            f"{name:21}{lines:>11}{row['plain_ms']:7.2f} ms{row['ported_ms']:7.2f} ms"
            f"{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
