"""BatchTraceHook: a record of the training data of a run, in order."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hookline.engine import BaseHook, BaseRunner, Priority, state
from hookline.errors import HooklineError
from hookline.files import replace_file
from hookline.rng import rng_state

STARTED = "training_started.json"


class Start(NamedTuple):
    """The beginning of a training: its process, and the iterations that were done before."""

    process: int
    iteration: int


def write_start(work_dir: Path, iteration: int) -> None:
    """Record that this process begins to train after a number of iterations."""
    work_dir.mkdir(parents=True, exist_ok=True)
    start = Start(os.getpid(), iteration)
    replace_file(work_dir / STARTED, json.dumps(start._asdict()))


def read_start(work_dir: Path) -> Start | None:
    """Return the last beginning of a training in a work directory; None if there was none."""
    try:
        return Start(**json.loads((work_dir / STARTED).read_text()))
    except FileNotFoundError:
        return None


def is_training(work_dir: Path, process: int) -> bool:
    """Return whether a process has begun to train in a work directory."""
    start = read_start(work_dir)
    return start is not None and start.process == process


@dataclass
class BatchTraceHook(BaseHook):
    """Record a short digest of every training batch, to compare the data of two runs.

    When the training begins, a file in its work directory gets the process id and the iteration.

    Attributes:
        initial: Digests of the weights and of each random number generator before training.
        digests: A digest of each batch.
    """

    initial: dict[str, str] = state({})
    digests: list[str] = state([])

    priority = Priority.LOWEST

    def before_train(self, runner: BaseRunner) -> None:
        if not runner.iter:
            initial = {"weights": dict(runner.model.state_dict()), **rng_state()}
            self.initial = {name: _digest(value) for name, value in initial.items()}
            self.digests = []
        write_start(runner.work_dir, runner.iter)

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.digests.append(_digest(runner.batch))


@dataclass
class TrialHook(BatchTraceHook):
    """The trace of a run that `hookline verify-resume` checks."""

    def before_train(self, runner: BaseRunner) -> None:
        self._check_only_training(runner)
        self._check_directory(runner)
        super().before_train(runner)

    def _check_only_training(self, runner: BaseRunner) -> None:
        if is_training(runner.work_dir, os.getpid()):
            raise HooklineError(
                "this script trains more than once, and all its runs would share one work "
                "directory: verify a script that trains once",
                component=self.name,
            )

    def _check_directory(self, runner: BaseRunner) -> None:
        directory = runner.checkpointer.store.directory
        if runner.checkpointer.is_open and directory.resolve() != runner.work_dir.resolve():
            raise HooklineError(
                f"checkpoints are written to {directory}, which is not the work directory "
                f"({runner.work_dir}): remove out_dir from CheckpointHook",
                component=self.name,
                value=str(directory),
            )


def _digest(value: Any) -> str:
    digest = hashlib.blake2b(digest_size=4)
    _update(digest, value)
    return digest.hexdigest()


def _update(digest: hashlib.blake2b, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        if value.numel():
            data = value.detach().cpu().reshape(-1).view(torch.uint8)
            digest.update(data.numpy().tobytes())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            digest.update(str(key).encode())
            _update(digest, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            _update(digest, item)
    else:
        digest.update(repr(value).encode())
