"""Record metrics of the training batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from hookline.diagnosis import describe_shapes
from hookline.dist import current_world
from hookline.dist.gather import batch_share
from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import HooklineError, add_note, parameter_error, require_at_least
from hookline.metrics import build_metrics
from hookline.metrics.means import Mean

Sums = dict[str, tuple[float, int]]  # the sum over all samples so far and their number, by metric


@HOOKS.register()
@dataclass
class TrainMetricsHook(BaseHook):
    """Record metrics of the training batches, such as `train/accuracy`.

    The predictions are those of the training step itself: with dropout and augmentation, and with
    weights that change during the epoch. There is no further forward pass. Each sample of an epoch
    counts once, over all ranks, also after a resume in the middle of an epoch.

    Args:
        metrics: Metrics that are means over samples: `accuracy`, `top5`, `mae`, `mse`, or functions
            of predictions and targets; also as a mapping by name.
        interval: Number of iterations between two records, each over these iterations. None
            records once an epoch.

    State:
        The sums of each rank since the last record. A run with another number of ranks continues
        with their total.

    Example:
        ```yaml
        hooks:
          - {type: TrainMetricsHook, metrics: [accuracy]}
        ```
    """

    metrics: list[Any] | dict[str, Any] = field(default_factory=lambda: ["accuracy"])
    interval: int | None = None

    ranks = "collective"

    def __post_init__(self) -> None:
        if self.interval is not None:
            require_at_least(self, 1, "interval")
            self.disable_sites("after_train_epoch")
        self._means: dict[str, Mean] = {}
        for name, metric in build_metrics(self.metrics).items():
            if not isinstance(metric, Mean):
                expected = "must be means over samples, such as accuracy, top5, mae or mse"
                raise parameter_error(self, "metrics", expected, value=name)
            self._means[name] = metric

    def before_train_epoch(self, runner: BaseRunner) -> None:
        if self.interval is None and runner.inner_iter == 0:
            self._reset()

    def after_train_iter(self, runner: BaseRunner) -> None:
        if batch_share(runner) > 0:  # Otherwise the batch repeats a sample of another rank.
            self._update(runner)
        if self.interval is not None and self.every_n_iters(runner, self.interval):
            self._record(runner)
            self._reset()

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self._record(runner)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        checkpoint = runner.checkpoint
        assert checkpoint is not None
        if "by_rank" in checkpoint:  # All ranks are here. The captured state is that of rank 0.
            texts = runner.world.gather_text(json.dumps(self._sums()))
            checkpoint["hooks"][self.name] = {"sums": [json.loads(text) for text in texts]}

    def state_dict(self) -> dict[str, Any]:
        """Return the sums of this rank."""
        return {"sums": [self._sums()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the sums of this rank; rank 0 gets those of all if their number has changed."""
        world = current_world()
        by_rank = state["sums"]
        self._reset()
        if len(by_rank) == world.size:
            self._add(by_rank[world.rank])
        elif world.is_main:
            for sums in by_rank:
                self._add(sums)

    def _update(self, runner: BaseRunner) -> None:
        predictions = runner.outputs.get("predictions")
        targets = runner.outputs.get("targets")
        if predictions is None or targets is None:
            raise HooklineError(
                f"{self.name} needs the predictions and the targets of each batch: return both "
                "from train_step, beside the loss"
            )
        with torch.no_grad():
            for name, mean in self._means.items():
                try:
                    mean.update(predictions, targets)
                except Exception as error:
                    shapes = describe_shapes(predictions=predictions, targets=targets)
                    add_note(error, f"hookline: the metric {name!r} got {shapes}")
                    raise

    def _record(self, runner: BaseRunner) -> None:
        values = {f"train/{name}": mean.compute() for name, mean in self._means.items()}
        runner.events.put_scalars(values, smoothing_hint=False)

    def _sums(self) -> Sums:
        return {name: mean.sums() for name, mean in self._means.items()}

    def _add(self, sums: Sums) -> None:
        for name, (total, count) in sums.items():
            if name in self._means:
                self._means[name].add(total, count)

    def _reset(self) -> None:
        for mean in self._means.values():
            mean.reset()
