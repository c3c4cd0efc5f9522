"""Kill training runs again and again, at random moments and inside saves, and compare each with a run that was left alone.

    python scripts/kill_chains.py [--kills 300] [--jobs 2] [--seed 0] [--case NAME …] [--json FILE]

Processes are forked from one that has everything imported, so that a kill costs a second and not ten; they are real
processes, and SIGKILL is what ends them. Exit code 1 if any chain failed to resume or ended differently.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import Runner, make_loader
from hookline.hooks import build_hook
from hookline.verify import BatchTraceHook, Chain, compare_runs, run_chain

SAMPLES, FEATURES, CLASSES, WIDTH = 230, 32, 5, 1400  # 2 million weights: a checkpoint of 24 MB takes long enough to be hit


class Augmented(TensorDataset):
    """Data that draws random numbers of all three kinds when it is read."""

    def __getitem__(self, index: int) -> Any:
        x, y = super().__getitem__(index)
        return x * random.uniform(0.9, 1.1) + torch.randn(()) * 0.1 + float(np.random.rand()) * 0.1, y


def data(augmented: bool, seed: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    x = torch.randn(SAMPLES, FEATURES, generator=generator) + nn.functional.one_hot(y, FEATURES)
    return (Augmented if augmented else TensorDataset)(x, y)


def case(*hooks: dict[str, Any], workers: int = 0, epochs: int | None = None, every: int = 4) -> Callable[[Path], Runner]:
    """A run: its hooks, workers, length, and how often it saves (by iteration, or by epoch if its length is in epochs)."""

    def build(work_dir: Path) -> Runner:
        torch.set_num_threads(1)
        torch.manual_seed(1)
        body = nn.Linear(FEATURES, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.3), nn.Linear(WIDTH, WIDTH)
        model = nn.Sequential(*body, nn.Linear(WIDTH, CLASSES))
        save = {"type": "CheckpointHook", "max_keep_ckpts": 2}
        save |= {"interval": 1} if epochs else {"interval": every, "by_epoch": False}
        return Runner(
            model,
            train_loader=make_loader(data(True, 0), batch_size=16, shuffle=True, num_workers=workers, seed=1),
            val_loader=make_loader(data(False, 1), batch_size=64),
            optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
            loss_fn=nn.CrossEntropyLoss(),
            metrics=["accuracy"],
            seed=1,
            work_dir=work_dir,
            resume="auto",
            hooks=[build_hook(hook) for hook in (save, {"type": "LoggerHook", "interval": 3}, *hooks)] + [BatchTraceHook()],
            **({"max_epochs": epochs} if epochs else {"max_iters": 52}),
        )

    return build


EMA = {"type": "EMAHook", "momentum": 0.99, "warm_up": 5}
STOP = {"type": "EarlyStoppingHook", "monitor": "val_loss", "patience": 2, "min_delta": 0.05}
ACCUMULATE = {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 3}
COSINE = {"type": "CosineAnnealingLrUpdaterHook", "min_lr": 1e-5, "by_epoch": False, "warmup": "linear", "warmup_iters": 10}
VALIDATE = {"type": "EvalHook", "interval": 10, "by_epoch": False}

CASES = {
    "dropout, saved by iteration": case(),
    "saved by epoch": case(epochs=4),
    "two workers": case(workers=2),
    "accumulation": case(ACCUMULATE, COSINE),
    "averaging": case(EMA, VALIDATE),
    "early stopping": case(STOP, epochs=6),
    "everything, no workers": case(EMA, ACCUMULATE, COSINE, VALIDATE, STOP),
    "everything, two workers": case(EMA, ACCUMULATE, COSINE, VALIDATE, STOP, workers=2, every=3),
}


def fork(build: Callable[[Path], Runner], work_dir: Path) -> int:
    """Run in a process of its own, without waiting for it."""
    work_dir.mkdir(parents=True, exist_ok=True)
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        output = os.open(work_dir / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1), os.dup2(output, 2)
        build(work_dir).train()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)


def straight_run(build: Callable[[Path], Runner], work_dir: Path) -> float:
    started = time.monotonic()
    _, status = os.waitpid(fork(build, work_dir), 0)
    if status:
        raise RuntimeError(f"the straight run failed:\n{(work_dir / 'output.txt').read_text()[-2000:]}")
    return time.monotonic() - started


def one_chain(name: str, folder: Path, kills: int, seconds: float, seed: int) -> dict[str, Any]:
    """A chain of killed runs, and how it compares with the straight one."""
    pieces = folder / name.replace(",", "").replace(" ", "_") / f"killed-{seed}"
    result = run_chain(lambda work_dir: fork(CASES[name], work_dir), pieces, Chain(kills, 2 * seconds / (kills + 1), seed, limit=120))
    differences = []
    if not result.failures:
        differences = [f"{subject}: {texts[0]}" for subject, texts in compare_runs(pieces.parent / "straight", pieces).items() if texts]
    else:
        result.failures.append((pieces / "output.txt").read_text()[-1500:])
    return {"case": name, "kills": result.kills, "in_save": result.kills_in_save, "failures": result.failures, "differences": differences}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="how many in all (default: 300)")
    parser.add_argument("--per-chain", type=int, default=8, help="how many until a run may finish (default: 8)")
    parser.add_argument("--jobs", type=int, default=2, help="chains at a time (default: 2)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only these (default: all)")
    parser.add_argument("--json", type=Path, help="also write the results here")
    args = parser.parse_args()
    names = args.case or list(CASES)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="kill-chains-") as name, ThreadPoolExecutor(args.jobs) as pool:
        folder = Path(name)
        seconds = {case: straight_run(CASES[case], folder / case.replace(",", "").replace(" ", "_") / "straight") for case in names}
        number = 0
        while sum(row["kills"] for row in rows) < args.kills:
            batch = [(names[(number + i) % len(names)], args.seed + number + i) for i in range(args.jobs)]
            number += args.jobs
            for row in pool.map(lambda item: one_chain(item[0], folder, args.per_chain, seconds[item[0]], item[1]), batch):
                rows.append(row)
                bad = "; ".join(row["failures"][:2] + row["differences"])
                print(f"{row['case']:26} {row['kills']:3} kills, {row['in_save']:2} in a save: {bad or 'identical'}", flush=True)
    killed, in_save = (sum(row[key] for row in rows) for key in ("kills", "in_save"))
    bad_rows = [row for row in rows if row["failures"] or row["differences"]]
    good = len(rows) - len(bad_rows)
    print(f"{killed} kills, {in_save} inside a save, in {len(rows)} chains: {good} ended bit-identical, {len(bad_rows)} not")
    if args.json:
        args.json.write_text(json.dumps({"kills": killed, "in_save": in_save, "chains": rows}, indent=2) + "\n")
    return 1 if bad_rows else 0


if __name__ == "__main__":
    sys.exit(main())
