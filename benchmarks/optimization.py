"""Measure clipping, accumulation, schedules and two optimizers against the same loop by hand.

    python benchmarks/optimization.py [--blocks 400] [--block 40] [--json FILE]

A tiny MLP (32-64-10), batch 32, one thread, as in overhead.py. The contenders take turns of a few
milliseconds, and the CPU time of each turn is divided by that of the loop by hand with the same
features in the same round.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from hookline import Runner
from hookline.hooks.builder import DEFAULT_HOOKS

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import TurnLoader, parts, ratio, take_turns

GROUP = 4  # iterations in an optimizer step
MAX_NORM = 1.0
MIN_LR = 0.0001
CLIP = {"max_norm": MAX_NORM}
TWO = "two optimizers"


def two_optimizers(model: torch.nn.Module) -> dict[str, torch.optim.Optimizer]:
    """Return Muon for the matrices and AdamW for the other parameters."""
    matrices = [each for each in model.parameters() if each.ndim == 2]
    others = [each for each in model.parameters() if each.ndim != 2]
    return {
        "matrices": torch.optim.Muon(matrices, lr=0.001),
        "others": torch.optim.AdamW(others, lr=0.001),
    }


def two_by_hand(loader: TurnLoader) -> None:
    """Train with two optimizers and clipping over both."""
    model, _, loss_fn = parts()
    params, optimizers = list(model.parameters()), list(two_optimizers(model).values())
    model.train()
    for inputs, targets in loader:
        loss_fn(model(inputs), targets).backward()
        torch.nn.utils.clip_grad_norm_(params, MAX_NORM)
        for optimizer in optimizers:
            optimizer.step()
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)


def two_hookline(loader: TurnLoader) -> None:
    model, _, loss_fn = parts()
    run(
        loader,
        model,
        two_optimizers(model),
        loss_fn,
        [{"type": "OptimizerHook", "grad_clip": CLIP}],
    )


def by_hand(loader: TurnLoader, *, clip: bool, accumulate: bool, cosine: bool) -> None:
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


def hookline(loader: TurnLoader, *, clip: bool, accumulate: bool, cosine: bool) -> None:
    model, optimizer, loss_fn = parts()
    owner: dict[str, object] = {"type": "OptimizerHook"}
    if accumulate:
        owner = {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": GROUP}
    hooks = [{**owner, "grad_clip": CLIP if clip else None}]
    if cosine:
        hooks.append({"type": "CosineAnnealingLrUpdaterHook", "min_lr": MIN_LR, "by_epoch": False})
    run(loader, model, optimizer, loss_fn, hooks)


def run(
    loader: TurnLoader, model: torch.nn.Module, optimizer: Any, loss_fn: Any, hooks: list[Any]
) -> None:
    """Train without the default hooks."""
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


def measure(blocks: int, block: int) -> dict[str, dict[str, float]]:
    """Return the microseconds per iteration of both, and their ratio."""
    ways: dict[str, Callable[..., None]] = {"hand": by_hand, "hookline": hookline}
    contenders: dict[str, Callable[[TurnLoader], None]] = {
        f"{way} {name}": partial(ways[way], **FEATURES[name]) for name in FEATURES for way in ways
    }
    contenders |= {f"hand {TWO}": two_by_hand, f"hookline {TWO}": two_hookline}
    times = take_turns(contenders, blocks, block)
    return {
        name: {
            "hand_us": statistics.median(times[f"hand {name}"]),
            **ratio(times[f"hookline {name}"], times[f"hand {name}"]),
        }
        for name in (*FEATURES, TWO)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=400)
    parser.add_argument("--block", type=int, default=40, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    results = measure(arguments.blocks, arguments.block)
    setup = f"tiny MLP 32-64-10, batch 32, one thread, torch {torch.__version__}"
    print(f"{setup}; medians of {arguments.blocks} turns")
    print(f"{'':16}{'by hand µs':>12}{'hookline µs':>13}{'ratio':>8}   quartiles")
    for name, row in results.items():
        times = f"{row['hand_us']:12.1f}{row['us']:13.1f}"
        print(f"{name:16}{times}{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
