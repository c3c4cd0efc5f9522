"""`CheckpointHook(keep_best=k)` keeps the checkpoints that Lightning's `save_top_k=k` keeps."""

from __future__ import annotations

import math
import random

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from hookline.hooks import CheckpointHook
from tests.hooks.test_checkpoint_hook import epoch_of, run

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


def kept_by_us(folder, values: list[float], limit: int, rule: str, cut: int) -> set[str]:
    """Return the epochs of the files after a run that is resumed after the epoch `cut`."""
    for scores, length in ((values[:cut], cut), (values[cut:], len(values))):
        hook = CheckpointHook(interval=-1, best_metric="score", rule=rule, keep_best=limit)
        parts = {"scores": {"score": scores}, "max_epochs": length, "resume": "auto"}
        run(folder, hook, **parts)
    pattern = "best_score.pth" if limit == 1 else "best_score_*.pth"
    return {str(epoch_of(path) - 1) for path in folder.glob(pattern)}


@pytest.mark.parametrize("seed", range(100))
def test_the_same_checkpoints_survive(seed, tmp_path):
    draw = random.Random(seed)
    values = [draw.choice([0.0, 0.25, 0.5, 0.75, draw.random()]) for _ in range(EPOCHS)]
    limit = draw.randint(1, 5)
    rule, mode = draw.choice([("greater", "max"), ("less", "min")])
    ours = kept_by_us(tmp_path / "ours", values, limit, rule, draw.randint(1, EPOCHS - 1))
    assert ours == kept_by_lightning(tmp_path / "theirs", values, limit, mode)


@pytest.mark.parametrize("seed", range(20))
def test_a_nan_is_never_among_the_best(seed, tmp_path):
    """Lightning keeps one as long as there are fewer others; all other survivors are the same."""
    draw = random.Random(seed)
    values = [draw.choice([math.nan, 0.5, draw.random()]) for _ in range(EPOCHS)]
    limit = draw.randint(1, 5)
    rule, mode = draw.choice([("greater", "max"), ("less", "min")])
    theirs = kept_by_lightning(tmp_path / "theirs", values, limit, mode)
    finite = {name for name in theirs if not math.isnan(values[int(name)])}
    cut = draw.randint(1, EPOCHS - 1)
    assert kept_by_us(tmp_path / "ours", values, limit, rule, cut) == finite
