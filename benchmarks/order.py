"""Compare an order that is computed from the position with one that is drawn: time and memory.

    python benchmarks/order.py [--turns 15] [--json FILE]

For 10**6, 10**8 and 10**10 samples: the first batch of an epoch, a batch in the middle of an epoch
after a resume, and a batch on average over an epoch. All three are CPU times of one thread and of
the sampler alone; no data are read. The average of `randperm` includes its share of drawing the
order. Memory is the growth of a new process in the middle of an epoch. An order of 10**8 samples
is drawn in one turn only, because that takes seconds, and one that would not fit in memory is left
out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import torch

from hookline.data.sampler import EpochSampler

LENGTHS = (10**6, 10**8, 10**10)
METHODS = ("randperm", "feistel")
BATCH_SIZE = 32
BATCHES = 20_000  # from the beginning of an epoch, or all of a short one
LONG = 10**7  # samples; drawing the order of more takes seconds
MAX_DRAWN_SHARE = 0.5  # of the free memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--memory-of", nargs=2, metavar=("LENGTH", "METHOD"), help="internal")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory_of:
        length, method = arguments.memory_of
        print(measure_memory(make_sampler(int(length), method)))
        return
    results = {str(length): measure(length, arguments.turns) for length in LENGTHS}
    for length, rows in results.items():
        print(f"{int(length):,} samples, batches of {BATCH_SIZE}")
        for method, row in rows.items():
            print(f"  {method:10}{describe(row)}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def make_sampler(length: int, method: Any) -> EpochSampler:
    return EpochSampler(length, BATCH_SIZE, shuffle=True, shuffle_method=method)


def measure(length: int, turns: int) -> dict[str, dict[str, Any]]:
    """Return the figures of both methods, which take turns."""
    rows: dict[str, dict[str, Any]] = {}
    times: dict[str, list[dict[str, float]]] = {}
    for method in METHODS:
        needed = 8 * length if method == "randperm" else 0
        if needed > MAX_DRAWN_SHARE * psutil.virtual_memory().available:
            rows[method] = {"left_out": f"needs {needed / 1e9:.0f} GB of memory"}
        else:
            times[method] = []
    for turn in range(turns):
        for method, found in times.items():
            is_slow = method == "randperm" and length > LONG
            if turn == 0 or not is_slow:
                found.append(time_once(make_sampler(length, method), epoch=turn))
    for method, found in times.items():
        rows[method] = {name: statistics.median(turn[name] for turn in found) for name in found[0]}
        rows[method]["mb"] = memory_of(length, method)
    return {method: rows[method] for method in METHODS}


def time_once(sampler: EpochSampler, epoch: int) -> dict[str, float]:
    """Return the CPU times of one epoch's beginning and middle."""
    count = min(BATCHES, sampler.count())
    seconds, first = time_batches(sampler, epoch, 0, count)
    middle = sampler.after(0, sampler.count() // 2)
    resumed, _ = time_batches(sampler, epoch, middle, 1)
    # An order is drawn once in an epoch; computed chunks are part of each batch.
    batches_per_start = sampler.count() if sampler.find_method() == "randperm" else count
    average = first / batches_per_start + (seconds - first) / count
    return {"first_ms": first * 1e3, "resume_ms": resumed * 1e3, "batch_us": average * 1e6}


def time_batches(sampler: EpochSampler, epoch: int, start: int, count: int) -> tuple[float, float]:
    """Return the CPU time of some batches, and that of the first of them."""
    started = time.process_time()
    batches = sampler.batches(epoch, start)
    next(batches)
    first = time.process_time() - started
    for _ in itertools.islice(batches, count - 1):
        pass
    return time.process_time() - started, first


def memory_of(length: int, method: str) -> float:
    command = [sys.executable, __file__, "--memory-of", str(length), method]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(sampler: EpochSampler) -> float:
    """Return the growth of this process's memory while an epoch is in progress, in MB."""
    process = psutil.Process()
    next(make_sampler(1000, sampler.shuffle_method).batches(0))
    before = process.memory_info().rss
    batches = sampler.batches(0)
    for _ in itertools.islice(batches, 5000):
        pass
    return float(process.memory_info().rss - before) / 1e6


def describe(row: dict[str, Any]) -> str:
    if "left_out" in row:
        return f"left out: {row['left_out']}"
    return (
        f"first batch {row['first_ms']:10.3f} ms   resume {row['resume_ms']:10.3f} ms   "
        f"a batch {row['batch_us']:6.2f} µs   memory {row['mb']:8.1f} MB"
    )


if __name__ == "__main__":
    main()
