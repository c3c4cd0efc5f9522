"""A training script for `hookline verify-resume`: its argument is the kind of loop.

The weights are large and saved in every iteration, so that a random time is inside a save.
"""

from __future__ import annotations

import sys
from itertools import islice

import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import BaseHook, Runner, drive, make_loader

EPOCHS = 4
WIDTH = 1000
SAVE = {"type": "CheckpointHook", "by_epoch": False, "interval": 1, "max_keep_ckpts": 1}
LOG = {"type": "LoggerHook", "interval": 3}


def main(kind: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, WIDTH),
        nn.BatchNorm1d(WIDTH),
        nn.Dropout(0.5),
        nn.Linear(WIDTH, WIDTH),
        nn.Linear(WIDTH, 3),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(40, 6), torch.randint(3, (40,)))
    loader = make_loader(data, batch_size=8, shuffle=True, seed=1)
    LOOPS[kind](model, optimizer, loader)


def use_runner(model, optimizer, loader) -> None:
    parts = {"train_loader": loader, "optimizer": optimizer, "loss_fn": nn.CrossEntropyLoss()}
    Runner(model, hooks=[SAVE, LOG], max_epochs=EPOCHS, drop_hooks=["ReportHook"], **parts).train()


def pull(model, optimizer, loader) -> None:
    with drive([SAVE, LOG], model, optimizer, loader, max_epochs=EPOCHS) as run:
        for inputs, targets in run:
            run.loss(nn.functional.cross_entropy(model(inputs), targets)).backward()
            optimizer.step()
            optimizer.zero_grad()


def push(model, optimizer, loader) -> None:
    parts = {"epoch_length": len(loader), "max_epochs": EPOCHS}
    with drive([SAVE, LOG], model, optimizer, **parts) as run:
        for epoch in range(run.runner.epoch, EPOCHS):
            loader.set_epoch(epoch)
            batches = islice(loader, run.runner.inner_iter, None)
            run.begin_epoch()
            for inputs, targets in batches:
                run.begin_batch((inputs, targets))
                loss = run.loss(nn.functional.cross_entropy(model(inputs), targets))
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                run.end_batch()
            run.end_epoch()


class Unsaved(BaseHook):
    """Scales the loss by a count of iterations that no checkpoint holds."""

    def __init__(self) -> None:
        self.count = 0

    def after_forward(self, runner) -> None:
        self.count += 1
        runner.outputs["loss"] = runner.outputs["loss"] * self.count


def unsaved(model, optimizer, loader) -> None:
    parts = {"train_loader": loader, "optimizer": optimizer, "loss_fn": nn.CrossEntropyLoss()}
    hooks = [SAVE, LOG, Unsaved()]
    Runner(model, hooks=hooks, max_epochs=EPOCHS, drop_hooks=["ReportHook"], **parts).train()


def undeclared(model, optimizer, loader) -> None:
    """Add noise from a generator that the run does not know."""
    generator = torch.Generator().manual_seed(0)
    with drive([SAVE, LOG], model, optimizer, loader, max_epochs=EPOCHS) as run:
        for inputs, targets in run:
            noisy = inputs + torch.randn(inputs.shape, generator=generator)
            run.loss(nn.functional.cross_entropy(model(noisy), targets)).backward()
            optimizer.step()
            optimizer.zero_grad()


LOOPS = {
    "runner": use_runner,
    "pull": pull,
    "push": push,
    "unsaved": unsaved,
    "undeclared": undeclared,
}

if __name__ == "__main__":
    main(sys.argv[1])
