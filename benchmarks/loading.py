"""Compare our loader with torch's DataLoader, without workers and with two.

    python benchmarks/loading.py [--rounds 21] [--json FILE]

In each round both loaders read a shuffled epoch, in random order, and the ratio of their times is
taken. *list* items are a number and a label from a list, the cheapest items in Python; *made* items
are a tensor made from a list of 32 numbers, and a label. The data sets draw no random numbers,
except the last one, which draws 33 per sample. *Declared* data sets have `deterministic = True`, so
that our loader does not check for draws after each batch. Times are CPU times of the process and
its workers.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hookline import make_loader

SAMPLES = 20_000
BATCH_SIZE = 64
WARM_UP = 1  # rounds that do not count


class ListItems(Dataset):
    def __init__(self) -> None:
        self.items = [(float(index), index % 10) for index in range(SAMPLES)]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class MadeItems(ListItems):
    def __init__(self) -> None:
        self.items = [([float(index)] * 32, index % 10) for index in range(SAMPLES)]

    def __getitem__(self, index: int) -> Any:
        values, label = self.items[index]
        return torch.tensor(values), label


class DeclaredListItems(ListItems):
    deterministic = True


class DeclaredMadeItems(MadeItems):
    deterministic = True


class RandomItems(MadeItems):
    def __getitem__(self, index: int) -> Any:
        values, label = super().__getitem__(index)
        return values + torch.randn(32) * random.random(), label


DATASETS = {
    "TensorDataset": lambda: TensorDataset(torch.randn(SAMPLES, 32), torch.arange(SAMPLES)),
    "list items": ListItems,
    "list items, declared": DeclaredListItems,
    "made items": MadeItems,
    "made items, declared": DeclaredMadeItems,
    "made items with random numbers": RandomItems,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[str, Any]] = {}
    for name, make in DATASETS.items():
        dataset = make()
        results[name] = {}
        for workers in (0, 2):
            row = compare(dataset, workers, arguments.rounds)
            results[name][str(workers)] = row
            print(
                f"{name:32} {workers} workers: torch {row['torch_us']:8.1f} µs a batch, "
                f"ours {row['us']:8.1f}, ratio {row['ratio']:.3f} "
                f"({row['low']:.3f}–{row['high']:.3f})",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def compare(dataset: Any, workers: int, rounds: int) -> dict[str, float]:
    """Return the times of a batch and the median of the ratios, with quartiles."""
    options: dict[str, Any] = {"shuffle": True, "num_workers": workers}
    loaders = {
        "torch": DataLoader(dataset, BATCH_SIZE, **options),
        "ours": make_loader(dataset, BATCH_SIZE, **options),
    }
    times: dict[str, list[float]] = {name: [] for name in loaders}
    for turn in range(rounds + WARM_UP):
        for name in random.sample(list(loaders), 2):
            seconds = time_epoch(loaders[name])
            if turn >= WARM_UP:
                times[name].append(seconds / len(loaders[name]) * 1e6)
    ratios = [ours / torchs for ours, torchs in zip(times["ours"], times["torch"], strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "us": statistics.median(times["ours"]),
        "torch_us": statistics.median(times["torch"]),
        "ratio": statistics.median(ratios),
        "low": low,
        "high": high,
    }


def time_epoch(loader: Iterable[Any]) -> float:
    """Return the CPU time of an epoch, with that of the workers, which end with it."""
    before = cpu_seconds()
    for _ in loader:
        pass
    return cpu_seconds() - before


def cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


if __name__ == "__main__":
    main()
