"""What clipping, accumulation and a cosine schedule cost as hooks: Hookline against the same loop written by hand, in one run.

    python benchmarks/optimization.py [--rounds 15] [--iters 3000] [--json FILE]

A tiny MLP (32-64-10), batch 32, one thread, as in overhead.py: the contenders take turns in random order, CPU time is taken, and
each round's times are divided by those of the loop by hand with the same features in the same round.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from hookline import Runner
from hookline.hooks.builder import DEFAULT_HOOKS

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.overhead import TimedLoader, parts

GROUP, MAX_NORM, MIN_LR = 4, 1.0, 0.0001
CLIP = {"max_norm": MAX_NORM}


def by_hand(loader: TimedLoader, *, clip: bool, accumulate: bool, cosine: bool) -> None:
    model, optimizer, loss_fn = parts()
    params, group, length = list(model.parameters()), optimizer.param_groups[0], len(loader)
    base = group["lr"]
    model.train()
    for index, (inputs, targets) in enumerate(loader):
        if cosine:
            group["lr"] = MIN_LR + 0.5 * (base - MIN_LR) * (1 + math.cos(math.pi * index / length))
        loss = loss_fn(model(inputs), targets)
        if accumulate:
            (loss / GROUP).backward()
            if (index + 1) % GROUP and index + 1 < length:
                continue
        else:
            loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(params, MAX_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def hookline(loader: TimedLoader, *, clip: bool, accumulate: bool, cosine: bool) -> None:
    model, optimizer, loss_fn = parts()
    owner = {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": GROUP} if accumulate else {"type": "OptimizerHook"}
    hooks = [{**owner, "grad_clip": CLIP if clip else None}]
    if cosine:
        hooks.append({"type": "CosineAnnealingLrUpdaterHook", "min_lr": MIN_LR, "by_epoch": False})
    drop = [name for name in DEFAULT_HOOKS if name != "OptimizerHook"]
    with tempfile.TemporaryDirectory() as folder:
        Runner(
            model,
            train_loader=loader,
            optimizer=optimizer,
            loss_fn=loss_fn,
            max_epochs=1,
            work_dir=folder,
            drop_hooks=drop,
            hooks=hooks,
        ).train()


FEATURES = {
    "nothing": {"clip": False, "accumulate": False, "cosine": False},
    "clip": {"clip": True, "accumulate": False, "cosine": False},
    "accumulate": {"clip": False, "accumulate": True, "cosine": False},
    "cosine": {"clip": False, "accumulate": False, "cosine": True},
    "all three": {"clip": True, "accumulate": True, "cosine": True},
}


def measure(rounds: int, iters: int) -> dict[str, dict[str, float]]:
    """Microseconds per iteration of both, and their ratio: median and quartiles over the rounds."""
    ways: dict[str, Callable[..., None]] = {"hand": by_hand, "hookline": hookline}
    times: dict[str, dict[str, list[float]]] = {name: {way: [] for way in ways} for name in FEATURES}
    pairs = [(name, way) for name in FEATURES for way in ways]
    for _ in range(rounds):
        for name, way in random.sample(pairs, len(pairs)):
            loader = TimedLoader(iters)
            ways[way](loader, **FEATURES[name])
            times[name][way].append(loader.seconds / iters * 1e6)
    results = {}
    for name, both in times.items():
        ratios = [ours / hand for ours, hand in zip(both["hookline"], both["hand"], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        medians = {f"{way}_us": statistics.median(values) for way, values in both.items()}
        results[name] = {**medians, "ratio": statistics.median(ratios), "low": low, "high": high}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--iters", type=int, default=3000)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    results = measure(arguments.rounds, arguments.iters)
    print(f"tiny MLP 32-64-10, batch 32, one thread, torch {torch.__version__}; medians of {arguments.rounds} rounds of {arguments.iters}")
    print(f"{'':14}{'by hand µs':>12}{'hookline µs':>13}{'ratio':>8}   quartiles")
    for name, row in results.items():
        print(f"{name:14}{row['hand_us']:12.1f}{row['hookline_us']:13.1f}{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
