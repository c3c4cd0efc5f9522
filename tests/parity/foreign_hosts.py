"""The Trainers of Lightning and Hugging Face as loops that hooks run in."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
import transformers
from torch import nn
from torch.utils.data import DataLoader, SequentialSampler

from hookline.compat.lightning import HooklineCallback as LightningCallback
from hookline.compat.transformers import HooklineCallback as TransformersCallback
from tests.parity.hosts import Host
from tests.parity.problem import (
    EPOCHS,
    SIZE,
    Images,
    make_model,
    make_optimizer,
    train_images,
)


class LightningSteps(pl.LightningModule):
    """The methods that Lightning's Trainer calls."""

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        inputs, targets = batch
        return nn.functional.cross_entropy(self(inputs), targets)

    def validation_step(self, batch: Any, index: int) -> dict[str, Any]:
        inputs, targets = batch
        scores = self(inputs)
        loss = nn.functional.cross_entropy(scores, targets)
        accuracy = (scores.argmax(1) == targets).float().mean()
        self.log_dict({"val_loss": loss, "accuracy": accuracy}, batch_size=len(targets))
        return {"loss": loss, "predictions": scores, "targets": targets}

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return make_optimizer(self)


def lightning(folder: Path, hook: str, hooks: list[Any]) -> Any:
    """Train in Lightning's Trainer, which steps and validates."""
    callback = LightningCallback(hooks, work_dir=folder)
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        callbacks=[callback],
        default_root_dir=folder,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(
            make_model(hook, LightningSteps),
            DataLoader(train_images(hook), SIZE),
            DataLoader(Images("val"), SIZE),
        )
    return callback.runner


class TransformersSteps:
    """The interface of models that compute their loss."""

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
        scores = super().forward(x)  # type: ignore[misc]
        if labels is None:
            return scores
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


class InOrder(transformers.Trainer):  # type: ignore[misc]
    """A Trainer that does not shuffle."""

    def _get_train_sampler(self, *args: Any) -> Any:
        return SequentialSampler(self.train_dataset)


def trainer(folder: Path, hook: str, hooks: list[Any]) -> Any:
    """Train in Hugging Face's Trainer, which steps and validates."""
    callback = TransformersCallback(hooks, work_dir=folder)
    model = make_model(hook, TransformersSteps)
    optimizer = make_optimizer(model)
    run = InOrder(
        model,
        transformers.TrainingArguments(
            str(folder / "trainer"),
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=SIZE,
            per_device_eval_batch_size=SIZE,
            eval_strategy="epoch",
            save_strategy="no",
            use_cpu=True,
            report_to=[],
            max_grad_norm=0,
            disable_tqdm=True,
        ),
        train_dataset=_as_dicts(train_images(hook)),
        eval_dataset=_as_dicts(Images("val")),
        optimizers=(optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)),
        compute_metrics=_accuracy,
        callbacks=[callback],
    )
    with callback:
        run.train()
    return callback.runner


def _as_dicts(images: Images) -> list[dict[str, torch.Tensor]]:
    pairs = [images[index] for index in range(len(images))]
    return [{"x": inputs, "labels": target} for inputs, target in pairs]


def _accuracy(evaluated: Any) -> dict[str, float]:
    return {"accuracy": float((evaluated.predictions.argmax(1) == evaluated.label_ids).mean())}


FOREIGN_HOSTS: dict[str, Host] = {
    "lightning": lightning,
    "transformers": trainer,
}
