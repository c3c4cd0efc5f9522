"""Batch norm statistics that are true averages rather than moving ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from hookline.dist import World
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.engine.capture import restore_rng, rng_state


@HOOKS.register()
@dataclass
class PreciseBNHook(BaseHook):
    """Every `period` iterations and after the last one, give each batch norm layer its true averages over `num_iter` batches.

    The batches come from `dataloader`, or from the beginning of the training data; where training stands in it, and its random
    numbers, stay as they are. A `period` of 0 does it only after the last iteration; `update_stats()` does it by hand.
    """

    num_iter: int = 200
    period: int = 0
    dataloader: Any = None

    priority = Priority.HIGH  # after_*: among the last, when the weights of this iteration are final
    ranks = "collective"

    def __post_init__(self) -> None:
        if self.num_iter < 1 or self.period < 0:
            raise ValueError(f"PreciseBNHook: num_iter must be at least 1 and period not negative, got {self.num_iter} and {self.period}")

    def before_train(self, runner: BaseRunner) -> None:
        self.disabled = not bn_layers(runner.model)
        if self.disabled:
            runner.logger.info("%s is disabled because the model has no batch norm layers in training mode", self.name)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if not self.disabled and (self.every_n_iters(runner, self.period) or self.is_last_iter(runner)):
            self.update_stats()

    def update_stats(self) -> None:
        """Give the runner's model precise statistics now."""
        runner = self.runner
        loader: Any = runner.train_loader if self.dataloader is None else self.dataloader
        batches = loader.whole_epoch() if hasattr(loader, "whole_epoch") else loader
        before = rng_state()
        try:
            some = islice(runner.on_device(batches), self.num_iter)
            count = precise_bn(runner.model, runner.evaluation_step("val"), some, runner.world)
        finally:
            restore_rng(before)
        runner.logger.info("%s: statistics of %d batches", self.name, count)


def bn_layers(model: nn.Module) -> list[_BatchNorm]:
    """The batch norm layers that are in training mode and keep statistics."""
    return [layer for layer in model.modules() if isinstance(layer, _BatchNorm) and layer.training and layer.track_running_stats]


@torch.no_grad()
def precise_bn(model: nn.Module, forward: Callable[[Any], object], batches: Iterable[Any], world: World | None = None) -> int:
    """Give each batch norm layer in training mode the mean of its batch statistics, over all processes; how many batches there were."""
    layers = bn_layers(model)
    statistics = [stat for layer in layers for stat in (layer.running_mean, layer.running_var) if stat is not None]
    results = [stat.clone() for stat in statistics]  # what is put in at the end: if anything fails, what was there
    kept = [(layer, layer.momentum, layer.num_batches_tracked) for layer in layers]
    totals = [torch.zeros_like(stat, dtype=torch.float64) for stat in statistics]
    count = 0
    try:
        for layer in layers:
            layer.momentum, layer.num_batches_tracked = 1.0, None  # then the running statistics are those of the last batch
        for batch in batches:
            forward(batch)
            torch._foreach_add_(totals, [stat.double() for stat in statistics])
            count += 1
        results = _means(totals, count, world) if count else results
    finally:
        for layer, momentum, tracked in kept:
            layer.momentum, layer.num_batches_tracked = momentum, tracked
        for stat, result in zip(statistics, results, strict=True):
            stat.copy_(result)
    return count


def _means(totals: list[torch.Tensor], count: int, world: World | None) -> list[torch.Tensor]:
    if world is None or world.size == 1:
        return [total / count for total in totals]
    sums = world.sum([float(count), *torch.cat([total.flatten() for total in totals]).tolist()])
    parts = torch.split(torch.tensor(sums[1:], dtype=torch.float64), [total.numel() for total in totals])
    return [(part / sums[0]).reshape(total.shape).to(total.device) for part, total in zip(parts, totals, strict=True)]
