"""`CheckpointHook(keep_best=k)` keeps the checkpoints that Lightning's `save_top_k=k` keeps."""

from __future__ import annotations

import random

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from hookline.checkpoint.best_files import BestFile, BestFiles, admit, drop_worst

EPOCHS = 12


class Scripted(lightning.LightningModule):
    """A model that logs a given score after each epoch and learns nothing."""

    def __init__(self, values: list[float]) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.values = values

    def training_step(self, batch, index):
        self.log("score", torch.tensor(self.values[self.current_epoch]))
        return self.weight.sum() * 0.0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def kept_by_lightning(folder, values: list[float], limit: int, mode: str) -> set[str]:
    callback = ModelCheckpoint(
        folder,
        "{epoch}",
        monitor="score",
        save_top_k=limit,
        mode=mode,
        save_on_train_epoch_end=True,
    )
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=len(values),
        callbacks=[callback],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Scripted(values), [torch.zeros(1)])
    return {path.stem.removeprefix("epoch=") for path in folder.glob("*.ckpt")}


def kept_by_us(values: list[float], limit: int, rule: str) -> set[str]:
    best = BestFiles(rule=rule, checkpoints=[])
    for number, value in enumerate(values):
        new = BestFile(file=str(number), value=value, epoch=number, iter=number)
        best, _ = drop_worst(admit(best, new, limit) or best, limit)
    return {each["file"] for each in best["checkpoints"]}


@pytest.mark.parametrize("seed", range(100))
def test_the_same_checkpoints_survive(seed, tmp_path):
    draw = random.Random(seed)
    values = [draw.choice([0.0, 0.25, 0.5, 0.75, draw.random()]) for _ in range(EPOCHS)]
    limit = draw.randint(1, 5)
    rule, mode = draw.choice([("greater", "max"), ("less", "min")])
    assert kept_by_us(values, limit, rule) == kept_by_lightning(tmp_path, values, limit, mode)
