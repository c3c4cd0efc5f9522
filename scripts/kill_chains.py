"""Kill training runs many times, also inside saves, and compare each with an uninterrupted run.

    python scripts/kill_chains.py [--kills 300] [--megabytes 24] [--jobs 2] [--seed 0]
        [--case NAME …] [--json FILE]

A chain is a run that is killed with SIGKILL and resumed several times. Its processes are forked
from one that has everything imported, so that a kill takes one second and not ten. Exit code 1 if
any chain failed to resume, ended differently or left a surplus file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from hookline import Runner, make_loader
from hookline.hooks import build_hook
from hookline.verify import BatchTraceHook, Chain, compare_runs, run_chain
from hookline.verify.trace import STARTED

Build = Callable[[Path, float], Runner]  # from the work directory and the size of a checkpoint

SAMPLES = 230
FEATURES = 32
CLASSES = 5
BATCH = 16
MEGABYTES = 24  # Writing a checkpoint of this size takes long enough to be hit.
BYTES_PER_WEIGHT = 12  # the weight itself and the two averages of AdamW
OUTPUT = "output.txt"
# One piece may take this long, or this many times as long as the uninterrupted run.
MIN_LIMIT_S = 120
LIMIT_FACTOR = 10


class Augmented(TensorDataset):
    """Data that draws random numbers from Python, torch and numpy when it is read."""

    def __getitem__(self, index: int) -> Any:
        x, y = super().__getitem__(index)
        scaled = x * random.uniform(0.9, 1.1)
        noise = torch.randn(()) * 0.1 + float(np.random.rand()) * 0.1
        return scaled + noise, y


def data(augmented: bool, seed: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    x = torch.randn(SAMPLES, FEATURES, generator=generator) + nn.functional.one_hot(y, FEATURES)
    return Augmented(x, y) if augmented else TensorDataset(x, y)


def resumable(workers: int) -> Iterable[Any]:
    return make_loader(data(True, 0), batch_size=BATCH, shuffle=True, num_workers=workers, seed=1)


def weighted(workers: int) -> Iterable[Any]:
    weights = torch.linspace(0.1, 1.0, SAMPLES).tolist()
    sampler = WeightedRandomSampler(weights, SAMPLES)
    return DataLoader(data(True, 0), batch_size=BATCH, sampler=sampler, num_workers=workers)


def torch_recipe(workers: int) -> Iterable[Any]:
    """Return the loader of PyTorch's notes on reproducibility."""
    return DataLoader(
        data(True, 0),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        generator=torch.Generator().manual_seed(1),
        worker_init_fn=seed_worker,
    )


def seed_worker(worker_id: int) -> None:
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


class Stream:
    """A stateful stream of batches without a length."""

    def __init__(self, workers: int) -> None:
        self._samples = data(False, 0)
        self._generator = torch.Generator().manual_seed(1)
        self._position = 0

    def __iter__(self) -> Iterator[Any]:
        while self._position < SAMPLES:
            self._position += BATCH
            yield self._samples[torch.randint(SAMPLES, (BATCH,), generator=self._generator)]
        self._position = 0

    def state_dict(self) -> dict[str, Any]:
        return {"position": self._position, "generator": self._generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._position = state["position"]
        self._generator.set_state(state["generator"])


def case(
    *hooks: dict[str, Any],
    workers: int = 0,
    epochs: int | None = None,
    every: int = 4,
    loader: Callable[[int], Iterable[Any]] = resumable,
    **saving: Any,
) -> Build:
    """Return a function that builds a run.

    Args:
        hooks: Configs of hooks, beside those for saving and logging.
        workers: The number of processes that load data.
        epochs: The length of the run, which then saves after each epoch; 52 iterations by default.
        every: The number of iterations between two saves, in a run without `epochs`.
        loader: Makes the training loader from the number of workers.
        saving: Further parameters of CheckpointHook.
    """

    def build(work_dir: Path, megabytes: float) -> Runner:
        torch.set_num_threads(1)
        torch.manual_seed(1)
        model = make_model(megabytes)
        save = {"type": "CheckpointHook", "max_keep_ckpts": 2, **saving}
        if epochs:
            save |= {"interval": 1}
            length = {"max_epochs": epochs}
        else:
            save |= {"interval": every, "by_epoch": False}
            length = {"max_iters": 52}
        configs = (save, {"type": "LoggerHook", "interval": 3}, *hooks)
        return Runner(
            model,
            train_loader=loader(workers),
            val_loader=make_loader(data(False, 1), batch_size=64),
            optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
            loss_fn=nn.CrossEntropyLoss(),
            metrics=["accuracy"],
            seed=1,
            work_dir=work_dir,
            resume="auto",
            hooks=[*(build_hook(config) for config in configs), BatchTraceHook()],
            **length,
        )

    return build


def make_model(megabytes: float) -> nn.Module:
    """Return a model whose checkpoints have about this size, without an average of the weights."""
    width = math.isqrt(round(megabytes * 1e6 / BYTES_PER_WEIGHT))
    return nn.Sequential(
        nn.Linear(FEATURES, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(width, width),
        nn.Linear(width, CLASSES),
    )


EMA = {"type": "EMAHook", "momentum": 0.99, "warm_up": 5}
STOP = {"type": "EarlyStoppingHook", "monitor": "val_loss", "patience": 2, "min_delta": 0.05}
ACCUMULATE = {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 3}
COSINE = {
    "type": "CosineAnnealingLrUpdaterHook",
    "min_lr": 1e-5,
    "by_epoch": False,
    "warmup": "linear",
    "warmup_iters": 10,
}
VALIDATE = {"type": "EvalHook", "interval": 10, "by_epoch": False}

CASES = {
    "dropout, saved by iteration": case(),
    "saved by epoch": case(epochs=4),
    "two workers": case(workers=2),
    "accumulation": case(ACCUMULATE, COSINE),
    "averaging": case(EMA, VALIDATE),
    "early stopping": case(STOP, epochs=6),
    "the three best": case(VALIDATE, EMA, keep_best=3),
    "overlapped copies": case(ACCUMULATE, overlap_copy=True),
    "everything, no workers": case(EMA, ACCUMULATE, COSINE, VALIDATE, STOP),
    "weighted sampler": case(loader=weighted),
    "weighted sampler, two workers": case(loader=weighted, workers=2),
    "generator recipe": case(loader=torch_recipe),
    "generator recipe, two workers": case(loader=torch_recipe, workers=2),
    "stateful stream": case(loader=Stream),
    "everything, two workers": case(EMA, ACCUMULATE, COSINE, VALIDATE, STOP, workers=2, every=3),
}


def fork(build: Build, work_dir: Path, megabytes: float) -> int:
    """Start a run in a forked process and return the process id."""
    work_dir.mkdir(parents=True, exist_ok=True)
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        output = os.open(work_dir / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        build(work_dir, megabytes).train()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def straight_run(build: Build, work_dir: Path, megabytes: float) -> float:
    """Run without interruption and return the seconds of its training."""
    _, status = os.waitpid(fork(build, work_dir, megabytes), 0)
    if status:
        raise RuntimeError(f"the straight run failed:\n{(work_dir / OUTPUT).read_text()[-2000:]}")
    return time.time() - (work_dir / STARTED).stat().st_mtime


def one_chain(
    name: str, folder: Path, args: argparse.Namespace, seconds: float, seed: int
) -> dict[str, Any]:
    """Run a chain and return how it compares with the uninterrupted run.

    Args:
        name: The case.
        folder: The folder of all runs.
        args: The arguments of the command.
        seconds: The time that the uninterrupted run has trained.
        seed: The seed of the times of the kills.
    """
    straight = folder_of(name, folder) / "straight"
    pieces = folder_of(name, folder) / f"killed-{seed}"
    span = 2 * seconds / (args.per_chain + 1)
    result = run_chain(
        lambda work_dir: fork(CASES[name], work_dir, args.megabytes),
        pieces,
        Chain(args.per_chain, span, seed, limit=max(MIN_LIMIT_S, LIMIT_FACTOR * seconds)),
    )
    differences = []
    if result.failures:
        result.failures.append((pieces / OUTPUT).read_text()[-1500:])
    else:
        for subject, texts in compare_runs(straight, pieces).items():
            if texts:
                differences.append(f"{subject}: {texts[0]}")
        differences += [f"surplus file: {file}" for file in surplus_files(straight, pieces)]
        if not differences:
            shutil.rmtree(pieces)
    return {
        "case": name,
        "kills": result.kills,
        "in_save": result.kills_in_save,
        "failures": result.failures,
        "differences": differences,
    }


def surplus_files(straight: Path, pieces: Path) -> list[str]:
    """Return the files that only the killed run has left."""
    expected = {path.relative_to(straight) for path in straight.rglob("*")}
    found = {path.relative_to(pieces) for path in pieces.rglob("*")}
    return sorted(map(str, found - expected))


def folder_of(case_name: str, folder: Path) -> Path:
    return folder / case_name.replace(",", "").replace(" ", "_")


def main() -> int:
    args = parse_arguments()
    rows = run_chains(args)
    killed = sum(row["kills"] for row in rows)
    in_save = sum(row["in_save"] for row in rows)
    bad = sum(bool(row["failures"] or row["differences"]) for row in rows)
    print(
        f"{killed} kills, {in_save} inside a save, in {len(rows)} chains: "
        f"{len(rows) - bad} ended bit-identical, {bad} not"
    )
    if args.json:
        content = {"kills": killed, "in_save": in_save, "chains": rows}
        args.json.write_text(json.dumps(content, indent=2) + "\n")
    return 1 if bad else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="total number (default: 300)")
    parser.add_argument(
        "--per-chain", type=int, default=8, help="kills before a run may finish (default: 8)"
    )
    parser.add_argument(
        "--megabytes",
        type=float,
        default=MEGABYTES,
        help=f"size of a checkpoint, about (default: {MEGABYTES})",
    )
    parser.add_argument("--jobs", type=int, default=2, help="chains at a time (default: 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--case", action="append", choices=list(CASES), help="run only this case (default: all)"
    )
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    return parser.parse_args()


def run_chains(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Run chains of all cases in turn until there were enough kills."""
    names = args.case or list(CASES)
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="kill-chains-") as path,
        ThreadPoolExecutor(args.jobs) as pool,
    ):
        folder = Path(path)
        seconds = {}
        for name in names:
            work_dir = folder_of(name, folder) / "straight"
            seconds[name] = straight_run(CASES[name], work_dir, args.megabytes)

        def run(number: int) -> dict[str, Any]:
            name = names[number % len(names)]
            return one_chain(name, folder, args, seconds[name], args.seed + number)

        number = 0
        while sum(row["kills"] for row in rows) < args.kills:
            for row in pool.map(run, range(number, number + args.jobs)):
                rows.append(row)
                print_chain(row)
            number += args.jobs
    return rows


def print_chain(row: dict[str, Any]) -> None:
    problems = "; ".join(row["failures"][:2] + row["differences"]) or "identical"
    print(
        f"{row['case']:30} {row['kills']:3} kills, {row['in_save']:2} in a save: {problems}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
