"""A program that trains with a tracker, and waits at an iteration to be killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.events.mlflow import MLflowWriter
from hookline.hooks import CheckpointHook, MLflowHook, TensorBoardHook

ITERATIONS = 12
INTERVAL = 2


class Record(BaseHook):
    """Records a value in each iteration, and one at a step beyond the run."""

    def after_train_iter(self, runner: Any) -> None:
        now = runner.iter + 1
        runner.events.put_scalar("own", now + 0.25)
        runner.events.put_scalar("ahead", now + 0.5, global_step=100 + now)


class WaitForKill(BaseHook):
    """Prints a line at the beginning of an iteration and waits for the end of the process."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def before_train_iter(self, runner: Any) -> None:
        if runner.iter + 1 == self.iteration:
            print("waiting", flush=True)
            sys.stdin.read()


class DeadlyWriter(MLflowWriter):
    """An MLflowWriter whose process dies after a delivery, before it can note the delivery."""

    deadly_step = 0

    def log_scalars(self, scalars: Any, step: int) -> None:
        super().log_scalars(scalars, step)
        if step == self.deadly_step:
            os.kill(os.getpid(), signal.SIGKILL)


class DeadlyHook(MLflowHook):
    """An MLflowHook with this writer."""

    def open_writer(self, runner: Any) -> MLflowWriter:
        return DeadlyWriter(self.tracking_uri, self.exp_name, None, self.run_id)


def main(folder: Path, kind: str, uri: str, wait_at: int, deadly_step: int) -> None:
    torch.manual_seed(0)
    if kind == "mlflow":
        DeadlyWriter.deadly_step = deadly_step
        tracker: BaseHook = DeadlyHook(tracking_uri=uri, interval=INTERVAL, exp_name=folder.name)
    else:
        tracker = TensorBoardHook(interval=INTERVAL)
    hooks = [tracker, Record(), WaitForKill(wait_at)]
    model = nn.Linear(4, 2)
    data = [(torch.randn(4, 4), torch.randint(2, (4,))) for _ in range(ITERATIONS // 2)]
    Runner(
        model,
        train_loader=data,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[*hooks, CheckpointHook(by_epoch=False, interval=3)],
        max_epochs=2,
        work_dir=folder,
        resume="auto",
    ).train()


if __name__ == "__main__":
    folder, kind, uri, wait_at, deadly_step = sys.argv[1:]
    main(Path(folder), kind, uri, int(wait_at), int(deadly_step))
