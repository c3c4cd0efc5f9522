"""Count the calls into the package, and the files of the called functions, for parts of a run.

    python scripts/count_calls.py

The run has the default hooks and `make_loader`, and only its main thread counts: one quiet
iteration, one validation of two batches, one save, and one resume. Exits with 1 if a quiet
iteration makes more than 20 calls.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

import hookline
from hookline import BaseHook, Runner, make_loader
from hookline.hooks import LambdaHook

PACKAGE = str(Path(hookline.__file__).parent)
MAX_CALLS = 20  # of a quiet iteration
QUIET_ITERATION = 10  # neither sampled nor reported


class CallCounter:
    """Counts calls into the package by file and function, between `start` and `stop`."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def start(self) -> None:
        sys.setprofile(self._count)

    def stop(self) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            self.calls[code.co_filename, code.co_name] += 1


class IterationCounter(CallCounter, BaseHook):
    """Counts the calls of one iteration, from its first site to that of the next one."""

    priority = "HIGHEST"

    def before_train_iter(self, runner: Any) -> None:
        if runner.iter == QUIET_ITERATION:
            self.start()
        elif runner.iter == QUIET_ITERATION + 1:
            self.stop()


class SeamCounter(CallCounter):
    """Observes a run, and counts the calls of its first seam of a kind."""

    def __init__(self, seam: str) -> None:
        super().__init__()
        self._seam = seam
        self._spans: list[bool] = []

    def before_iteration(self, runner: Any) -> None: ...

    def begin(self, kind: str, name: str) -> None:
        is_counted = kind == "seam" and name == self._seam and not self.calls
        self._spans.append(is_counted)
        if is_counted:
            self.start()

    def end(self) -> None:
        if self._spans.pop():
            self.stop()


def main() -> int:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        counters = {
            "quiet iteration": count_iteration(folder),
            "validation of two batches": count_seam("validate", folder),
            "save": count_seam("save", folder),
            "resume": count_resume(folder),
        }
    print(f"{'':<26}{'calls':>7}{'files':>7}{'functions':>11}")
    for name, counter in counters.items():
        files = {file for file, _ in counter.calls}
        total = sum(counter.calls.values())
        print(f"{name:<26}{total:>7}{len(files):>7}{len(counter.calls):>11}")
    calls = sum(counters["quiet iteration"].calls.values())
    if calls > MAX_CALLS:
        print(f"a quiet iteration makes {calls} calls, more than {MAX_CALLS}")
    return 1 if calls > MAX_CALLS else 0


def count_iteration(folder: str) -> CallCounter:
    counter = IterationCounter()
    make_runner(folder, counter).train()
    return counter


def count_seam(seam: str, folder: str) -> CallCounter:
    counter = SeamCounter(seam)
    runner = make_runner(folder)
    runner.sites.costs.add_observer(counter)
    runner.train()
    return counter


def count_resume(folder: str) -> CallCounter:
    """Count the calls between `before_run` and `before_train` of a run that resumes."""
    counter = CallCounter()
    hooks = [
        LambdaHook(before_run=lambda runner: counter.start()),
        LambdaHook(before_train=lambda runner: counter.stop()),
    ]
    hooks[0].priority = "LOWEST"
    hooks[1].priority = "HIGHEST"
    make_runner(folder, *hooks, max_epochs=2, resume="auto").train()
    return counter


def make_runner(folder: str, *hooks: Any, **parts: Any) -> Runner:
    """Return a run of one epoch with 20 iterations, unless `parts` change it."""
    model = nn.Linear(6, 3)
    data = TensorDataset(torch.randn(160, 6), torch.randint(3, (160,)))
    validation = TensorDataset(torch.randn(16, 6), torch.randint(3, (16,)))
    return Runner(
        model,
        train_loader=make_loader(data, batch_size=8, shuffle=True),
        val_loader=make_loader(validation, batch_size=8),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        work_dir=folder,
        hooks=hooks,
        **{"max_epochs": 1, **parts},
    )


if __name__ == "__main__":
    sys.exit(main())
