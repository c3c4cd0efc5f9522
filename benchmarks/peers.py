"""Measure the overhead of an iteration: Hookline and its peers against the same work by hand.

    python benchmarks/peers.py [--epochs 15] [--only mlp-minimal …] [--contenders Hookline …]
        [--json FILE]

Two problems, small enough to show the cost of a framework: a tiny MLP (32-64-10, batch 32) and a
small CNN (3×32×32, batch 64), one thread. *Minimal* is training alone, against the bare loop;
*typical* has logging every 50 iterations, a cosine schedule by iteration, clipping, an average of
the weights, and after each epoch a validation and a checkpoint, against the same written by hand.
Peers that are not installed are left out; `make bench-peers` installs them. `rounds.py` describes
how the contenders take turns.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import logging
import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch import nn

from benchmarks.rounds import Contender, Outcome, Problem, compare, compete, describe_error

# The module with a contender's two set-ups, the package it needs, and the distribution of that.
CONTENDERS = {
    "by hand": ("hand", "torch", "torch"),
    "Hookline": ("ours", "hookline", "hookline"),
    "Ignite": ("with_ignite", "ignite", "pytorch-ignite"),
    "Lightning Fabric": ("with_fabric", "lightning", "lightning"),
    "skorch": ("with_skorch", "skorch", "skorch"),
    "MMEngine": ("with_mmengine", "mmengine", "mmengine"),
    "Accelerate": ("with_accelerate", "accelerate", "accelerate"),
    "HF Trainer": ("with_transformers", "transformers", "transformers"),
    "Lightning": ("with_lightning", "lightning", "lightning"),
    "fastai": ("with_fastai", "fastai", "fastai"),
    "Keras (torch)": ("with_keras", "keras", "keras"),
    "Composer": ("with_composer", "composer", "mosaicml"),
}
HAND, IDLE = "by hand", "Hookline + 10 idle hooks"


def tiny_mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))


def small_cnn() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
    layers += [
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ]
    return nn.Sequential(*layers, nn.Linear(16, 10))


PROBLEMS = {
    "mlp": Problem("tiny MLP 32-64-10, batch 32", tiny_mlp, (32,), 32, epoch=1000, turn=50),
    "cnn": Problem("small CNN 3×32×32, batch 64", small_cnn, (3, 32, 32), 64, epoch=100, turn=5),
}
SETUPS = ("minimal", "typical")


def load(names: list[str], setup: str) -> tuple[dict[str, Contender], dict[str, str]]:
    """Return the available contenders, and the reasons why the others are not."""
    available: dict[str, Contender] = {}
    missing: dict[str, str] = {}
    for name in names:
        module, package, _ = CONTENDERS[name]
        if importlib.util.find_spec(package) is None:
            missing[name] = "not installed"
            continue
        try:
            found = importlib.import_module(f"benchmarks.contenders.{module}")
        except Exception as error:  # an installed framework may not support this torch
            missing[name] = f"cannot be imported: {describe_error(error)}"
            continue
        is_bare = name == HAND and setup == "minimal"
        available[name] = found.bare if is_bare else getattr(found, setup)
    if setup == "typical" and "Hookline" in available:
        from benchmarks.contenders import ours

        available[IDLE] = ours.with_idle_hooks
    return available, missing


def measure(problem: Problem, setup: str, names: list[str], epochs: int) -> dict[str, Any]:
    """Return a row for each contender, and the reasons why others have none."""
    contenders, missing = load(names, setup)
    outcomes = compete(contenders, problem, epochs)
    base = outcomes[HAND]
    rows = {}
    left_out = dict(missing)
    for name, outcome in outcomes.items():
        if outcome.error is not None or len(outcome.epochs) < 2:
            left_out[name] = outcome.error or "too few epochs"
        else:
            epochs = [round(value, 1) for value in outcome.epochs]
            rows[name] = {
                **compare(outcome, base),
                "background_us": outcome.background,
                "epochs_us": epochs,
            }
            if name == IDLE:
                rows[name] |= {"to_hookline": idle_ratio(outcome, outcomes["Hookline"])}
    return {"problem": problem.name, "setup": setup, "rows": rows, "left_out": left_out}


def idle_ratio(with_idle: Outcome, without: Outcome) -> dict[str, float]:
    row = compare(with_idle, without)
    return {key: row[key] for key in ("ratio", "low", "high")}


def versions() -> dict[str, str]:
    found = {}
    for name, (_, _, distribution) in CONTENDERS.items():
        try:
            found["torch" if name == HAND else name] = version(distribution)
        except PackageNotFoundError:
            continue
    return found


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['problem']}, {result['setup']}")
    print(f"{'':28}{'µs/iter':>9}{'ratio':>8}   quartiles      in other threads")
    for name, row in sorted(result["rows"].items(), key=lambda item: item[1]["ratio"]):
        ratios = f"{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}"
        print(f"{name:28}{row['us']:9.1f}{ratios}{row['background_us']:12.1f} µs")
    for name, reason in result["left_out"].items():
        print(f"{name:28} left out: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[f"{problem}-{setup}" for problem in PROBLEMS for setup in SETUPS],
    )
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    names = list(dict.fromkeys([HAND, *arguments.contenders]))
    results: dict[str, Any] = {"versions": versions()}
    for key in arguments.only or [f"{problem}-{setup}" for problem in PROBLEMS for setup in SETUPS]:
        problem, setup = key.split("-")
        results[key] = measure(PROBLEMS[problem], setup, names, arguments.epochs)
        show(results[key])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    sys.stdout.flush()
    os._exit(0)  # some frameworks leave threads that would keep the process alive


if __name__ == "__main__":
    main()
