"""BatchTraceHook: a record of the training data of a run, in order."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.files import replace_file

TRAINING = "training.pid"


def is_training(work_dir: Path, process: int) -> bool:
    """Return whether a process has begun to train in a work directory."""
    try:
        return (work_dir / TRAINING).read_text() == str(process)
    except FileNotFoundError:
        return False


@HOOKS.register()
@dataclass
class BatchTraceHook(BaseHook):
    """Record a short digest of every training batch, to compare the data of two runs.

    While the run trains, a file in its work directory holds its process id.
    """

    digests: list[str] = state([])

    priority = Priority.LOWEST

    def before_train(self, runner: BaseRunner) -> None:
        runner.work_dir.mkdir(parents=True, exist_ok=True)
        replace_file(runner.work_dir / TRAINING, str(os.getpid()))

    def before_train_iter(self, runner: BaseRunner) -> None:
        digest = hashlib.blake2b(digest_size=4)
        _update(digest, runner.batch)
        self.digests.append(digest.hexdigest())


def _update(digest: hashlib.blake2b, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        if value.numel():
            data = value.detach().cpu().contiguous().view(torch.uint8)
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
