"""Composer's Trainer, with its algorithms and callbacks, and stand-ins for torchvision."""

from __future__ import annotations

import tempfile
from typing import Any

import torch

from benchmarks.contenders.hand import INTERVAL, MAX_NORM, MIN_LR, MOMENTUM, parts
from benchmarks.rounds import Problem, ReadyLoader, TurnLoader
from tests.compat_foreign import composer_stubs

with composer_stubs.installed():
    from composer import ComposerModel, Trainer
    from composer.algorithms import EMA, GradientClipping
    from composer.callbacks import CheckpointSaver
    from composer.loggers import FileLogger


class Model(ComposerModel):
    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.net, self.made_optimizer, self.loss_fn = parts(problem)

    def forward(self, batch: Any) -> Any:
        return self.net(batch[0])

    def loss(self, outputs: Any, batch: Any) -> Any:
        return self.loss_fn(outputs, batch[1])

    def get_metrics(self, is_train: bool = False) -> dict[str, Any]:
        from torchmetrics.classification import MulticlassAccuracy

        return {} if is_train else {"accuracy": MulticlassAccuracy(num_classes=10, average="micro")}

    def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
        metric.update(outputs, batch[1])


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    _train(loader, problem, epochs)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        algorithms = [
            EMA(smoothing=MOMENTUM, half_life=None, update_interval="1ba"),
            GradientClipping("norm", MAX_NORM),
        ]
        model = Model(problem)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            model.made_optimizer, epochs * len(loader), MIN_LR
        )
        saver = CheckpointSaver(name, num_checkpoints_to_keep=5, save_interval="1ep")
        _train(
            loader,
            problem,
            epochs,
            model,
            eval_dataloader=ReadyLoader(problem),
            algorithms=algorithms,
            schedulers=schedule,
            step_schedulers_every_batch=True,
            callbacks=[saver],
            loggers=[FileLogger(f"{name}/log.txt", flush_interval=INTERVAL)],
        )


def _train(
    loader: TurnLoader, problem: Problem, epochs: int, model: Model | None = None, **options: Any
) -> None:
    model = model or Model(problem)
    Trainer(
        model=model,
        train_dataloader=loader,
        optimizers=model.made_optimizer,
        max_duration=f"{epochs}ep",
        device="cpu",
        progress_bar=False,
        log_to_console=False,
        auto_log_hparams=False,
        **options,
    ).fit()
