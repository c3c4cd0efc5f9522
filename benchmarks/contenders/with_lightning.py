"""Lightning's Trainer, with its own callbacks."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from benchmarks.contenders.hand import INTERVAL, MAX_NORM, MIN_LR, MOMENTUM, parts
from benchmarks.rounds import Problem, ReadyLoader, TurnLoader

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
QUIET = {
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
    "accelerator": "cpu",
    "devices": 1,
}


class Module(pl.LightningModule):
    def __init__(self, problem: Problem, total: int | None = None) -> None:
        super().__init__()
        self.net, self._optimizer, self.loss_fn = parts(problem)
        self.total = total

    def training_step(self, batch: Any, index: int) -> Any:
        inputs, targets = batch
        loss = self.loss_fn(self.net(inputs), targets)
        if self.total is not None:
            self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        inputs, targets = batch
        predictions = self.net(inputs)
        self.log("val_loss", self.loss_fn(predictions, targets))
        self.log("accuracy", (predictions.argmax(1) == targets).float().mean())

    def configure_optimizers(self) -> Any:
        if self.total is None:
            return self._optimizer
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self._optimizer, self.total, MIN_LR)
        return {
            "optimizer": self._optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    trainer = pl.Trainer(max_epochs=epochs, logger=False, enable_checkpointing=False, **QUIET)
    trainer.fit(Module(problem), loader)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        callbacks = [
            EMAWeightAveraging(decay=MOMENTUM),
            LearningRateMonitor("step"),
            ModelCheckpoint(name, save_top_k=-1, save_last=True),
        ]
        trainer = pl.Trainer(
            max_epochs=epochs,
            logger=CSVLogger(name),
            log_every_n_steps=INTERVAL,
            gradient_clip_val=MAX_NORM,
            callbacks=callbacks,
            **QUIET,
        )
        trainer.fit(Module(problem, epochs * len(loader)), loader, ReadyLoader(problem))
