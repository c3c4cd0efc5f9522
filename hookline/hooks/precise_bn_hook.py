"""Compute exact batch norm statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from hookline.batches import move_each
from hookline.dist import World
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import ConfigError, require_at_least
from hookline.rng import restore_rng, rng_state
from hookline.step import build_step


@HOOKS.register()
@dataclass
class PreciseBNHook(BaseHook):
    """Replace the moving averages of batch norm layers by exact averages over many batches.

    The update runs every `period` iterations and after the last one. It changes neither the
    position in the training data nor the random state. `update_stats()` runs it at any time.

    Args:
        num_iter: Number of batches to average.
        period: Number of iterations between two updates. 0 updates only after the last iteration.
        dataloader: Source of the batches. None uses the first batches of the training data.

    Example:
        ```yaml
        hooks:
          - {type: PreciseBNHook, num_iter: 200, period: 1000}
        ```
    """

    num_iter: int = 200
    period: int = 0
    dataloader: Any = None

    priority = Priority.HIGH  # Late at after_* sites, when the weights are final.
    ranks = "collective"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "num_iter")
        require_at_least(self, 0, "period")

    def before_train(self, runner: BaseRunner) -> None:
        if runner.train_loader is None and self.dataloader is None:
            message = "needs 'dataloader', because the runner has no train_loader"
            raise ConfigError(message, component=self.name, parameter="dataloader")
        self.disabled = not bn_layers(runner.model)
        if self.disabled:
            runner.logger.info(
                "%s is disabled because the model has no batch norm layers in training mode",
                self.name,
            )

    def after_train_iter(self, runner: BaseRunner) -> None:
        is_due = self.every_n_iters(runner, self.period) or self.is_last_iter(runner)
        if is_due and not self.disabled:
            self.update_stats()

    def update_stats(self) -> None:
        """Compute the statistics now."""
        runner = self.runner
        loader: Any = runner.train_loader if self.dataloader is None else self.dataloader
        batches = loader.whole_epoch() if hasattr(loader, "whole_epoch") else loader
        before = rng_state()
        try:
            step = build_step(runner, "val_step")
            some = islice(move_each(batches, runner.device), self.num_iter)
            count = precise_bn(runner.model, step, some, runner.world)
        finally:
            restore_rng(before)
        runner.logger.info("%s: statistics of %d batches", self.name, count)


def bn_layers(model: nn.Module) -> list[_BatchNorm]:
    """Return the batch norm layers in training mode that keep statistics."""
    return [
        layer
        for layer in model.modules()
        if isinstance(layer, _BatchNorm) and layer.training and layer.track_running_stats
    ]


@torch.no_grad()
def precise_bn(
    model: nn.Module,
    forward: Callable[[Any], object],
    batches: Iterable[Any],
    world: World | None = None,
) -> int:
    """Set the statistics of batch norm layers to their mean over batches and ranks.

    Returns the number of batches. If `forward` fails, the old statistics are restored.
    """
    layers = bn_layers(model)
    statistics = []
    for layer in layers:
        statistics += [each for each in (layer.running_mean, layer.running_var) if each is not None]
    results = [stat.clone() for stat in statistics]  # the old ones, in case a batch fails
    kept = [(layer, layer.momentum, layer.num_batches_tracked) for layer in layers]
    totals = [torch.zeros_like(stat, dtype=torch.float64) for stat in statistics]
    count = 0
    try:
        for layer in layers:
            # With momentum 1 the running statistics are those of the last batch.
            layer.momentum = 1.0
            layer.num_batches_tracked = None
        for batch in batches:
            forward(batch)
            torch._foreach_add_(totals, [stat.double() for stat in statistics])
            count += 1
        if count:
            results = _means(totals, count, world)
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
    parts = torch.split(
        torch.tensor(sums[1:], dtype=torch.float64), [total.numel() for total in totals]
    )
    return [
        (part / sums[0]).reshape(total.shape).to(total.device)
        for part, total in zip(parts, totals, strict=True)
    ]
