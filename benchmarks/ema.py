"""Measure an update of EMAHook, against `torch._foreach_lerp_` on the same tensors.

    python benchmarks/ema.py [--rounds 31] [--json FILE]

There are 200 tensors with 25 million and with 0.1 million parameters in total. The contenders take
turns in random order, and the CPU times of a round are divided by that of the bare operation in the
same round. torch's `AveragedModel` is measured for comparison.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from hookline.engine import BaseRunner
from hookline.hooks import EMAHook

TENSORS = 200
BARE = "torch._foreach_lerp_"


class Many(nn.Module):
    """A model that consists of parameters only."""

    def __init__(self, parameters: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(parameters // TENSORS)) for _ in range(TENSORS)
        )


def contenders(parameters: int) -> dict[str, Callable[[], object]]:
    model, other = Many(parameters), Many(parameters)
    hook = EMAHook(momentum=0.999)
    runner = BaseRunner(model, hooks=[hook])
    hook.before_run(runner)
    (update,) = runner.sites.after_train_iter
    live, average = hook.average.live, hook.average.average
    averaged = AveragedModel(other, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    averaged.update_parameters(other)
    return {
        BARE: lambda: torch._foreach_lerp_(average, live, 0.001),
        "EMAHook": lambda: update(runner),
        "AveragedModel": lambda: averaged.update_parameters(other),
    }


@torch.no_grad()
def measure(parameters: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the medians of the microseconds per update and of the ratio to the bare operation."""
    calls = contenders(parameters)
    repeats = max(2, 20_000_000 // parameters)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 2):
        for name in random.sample(list(calls), len(calls)):
            started = time.process_time()
            for _ in range(repeats):
                calls[name]()
            if turn >= 2:  # the first ones warm up
                times[name].append((time.process_time() - started) / repeats * 1e6)
    return {
        name: {
            "us": statistics.median(values),
            "ratio": statistics.median(
                value / bare for value, bare in zip(values, times[BARE], strict=True)
            ),
        }
        for name, values in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = {str(size): measure(size, arguments.rounds) for size in (25_000_000, 100_000)}
    for size, rows in results.items():
        print(
            f"{int(size):,} parameters in {TENSORS} tensors, one thread, torch {torch.__version__}"
        )
        for name, row in rows.items():
            print(f"  {name:24}{row['us']:12.1f} µs{row['ratio']:8.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
