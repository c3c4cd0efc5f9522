"""What the processes of the tests do that are about shares: of data, of numbers, of what is averaged."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from hookline import make_loader
from hookline.checkpoint import load_checkpoint
from hookline.dist import connect
from hookline.engine import BaseHook, Priority
from hookline.hooks import EMAHook, TrainMetricsHook
from hookline.hooks.bases.reports import combine_ranks
from tests.dist import jobs


def reported(folder: Path, names: list[str]) -> dict[str, float]:
    """What is made of numbers that each process has recorded: 1 on the first and 3 on the second."""
    world = connect()
    return dict(combine_ranks(world, dict.fromkeys(names, 1.0 + 2.0 * world.rank)))


def weighing_hooks(folder: Path) -> list[int]:
    """Return how many hooks weigh the last batch: by default, with a given one, and with none."""
    given, dropped = {"hooks": [{"type": "UnevenBatchHook"}]}, {"drop_hooks": ["UnevenBatchHook"]}
    runs = [jobs.runner(folder, **options) for options in ({}, given, dropped)]
    return [sum(type(hook).__name__ == "UnevenBatchHook" for hook in run.hooks) for run in runs]


class WithoutLoss(nn.Sequential):
    """A model that is evaluated by its predictions alone."""

    def val_step(self, batch: Any) -> dict[str, Any]:
        inputs, targets = batch
        return {"predictions": self(inputs), "targets": targets}


class NoNumber(jobs.LocalMetric):
    def compute(self) -> float:
        return math.nan


def evaluate(folder: Path) -> dict[str, float]:
    """The results on a set of odd size, dealt out by a DistributedSampler, of a model without a loss."""
    data, world = jobs.data(51), connect()
    loader = DataLoader(data, 8, sampler=DistributedSampler(data) if world.size > 1 else None)
    metrics = {"local": jobs.LocalMetric(), "nothing": NoNumber()}
    return dict(
        jobs.runner(
            folder, model=WithoutLoss(*jobs.network()), val_loader=loader, metrics=metrics
        ).validate()
    )


class WithErrors(nn.Sequential):
    """A model that returns more than its loss."""

    def train_step(self, batch: Any) -> dict[str, Any]:
        inputs, targets = batch
        predictions = self(inputs)
        loss, errors = (
            nn.functional.cross_entropy(predictions, targets),
            (predictions.argmax(1) != targets).float().mean(),
        )
        return {"loss": loss, "predictions": predictions, "targets": targets, "errors": errors}


def errors(folder: Path) -> list[float]:
    """The error rate of every batch, as the log has it."""
    options = {
        "hooks": [{"type": "LoggerHook", "interval": 1}],
        "val_loader": None,
        "max_epochs": 1,
    }
    jobs.runner(folder, model=WithErrors(*jobs.network()), **options).train()
    rows = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    return [row["errors"] for row in rows if row["mode"] == "train"]


def averaged_weights(folder: Path) -> dict[str, Any]:
    """The average of the weights, where each process has drawn its own first ones."""
    world = connect()
    torch.manual_seed(world.rank)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 2))
    model[1].running_mean += world.rank
    hook = EMAHook(momentum=0.9)
    run = jobs.runner(folder, model=model, hooks=[hook], val_loader=None, max_epochs=1)
    first = jobs.weights(run)
    run.train()
    return {
        "first": first,
        "average": {
            name: value.detach()
            for name, value in hook.average.state_dict().items()
            if "running" not in name
        },
    }


class Look(BaseHook):
    """Notes the running mean before any other hook of the site sees it."""

    priority = Priority.LOWEST

    def after_train_epoch(self, runner: Any) -> None:
        self.seen = runner.model[1].running_mean.clone()


def averaged_buffers(folder: Path, hook: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The running mean of batch norm before and after a hook makes it that of all, and as it was saved."""
    look = Look()
    run = jobs.runner(folder, batch_norm=True, hooks=[look, hook], val_loader=None, max_epochs=1)
    run.train()
    run.world.barrier()
    return {
        "before": look.seen,
        "after": run.model[1].running_mean.clone(),
        "saved": load_checkpoint(folder / "run" / "last.pth")["state_dict"]["1.running_mean"],
    }


def differing(folder: Path, what: str) -> str:
    """Return the error if ranks have different models or orders of the data."""
    rank = connect().rank
    if what == "model":
        return jobs.refused(folder, model=nn.Sequential(nn.Linear(8, 3), nn.Linear(3, 2 + rank)))
    return jobs.refused(
        folder, train_loader=make_loader(jobs.data(), batch_size=8, shuffle=True, seed=rank)
    )


def lengths(folder: Path, batch_size: int, **options: Any) -> dict[str, Any]:
    """Return the expected and the real length of a run with batches of this size on each rank."""
    run = jobs.runner(
        folder,
        train_loader=make_loader(jobs.data(), batch_size=batch_size, shuffle=True, seed=3),
        **options,
    )
    run.train()
    return {"max_iters": run.max_iters, "iter": run.iter, "epoch": run.epoch}


def confidence(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return predictions.softmax(1).amax(1)


def train_metrics(folder: Path, lr: float, **options: Any) -> dict[str, list[float]]:
    """The metrics of the training batches of each epoch; rank 1 has no sample in the last batch."""
    model = jobs.network()
    metrics = {"accuracy": "accuracy", "confidence": confidence}
    hooks = [TrainMetricsHook(metrics=metrics), *options.pop("hooks", [])]
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    parts = {"model": model, "optimizer": optimizer, "batch_size": 6, "max_epochs": 2, **options}
    run = jobs.runner(folder, hooks=hooks, val_loader=None, **parts)
    run.train()
    names = [f"train/{name}" for name in metrics]
    return {name: [each.value for each in run.events.history(name)] for name in names}
