"""The Trainer of Hugging Face's transformers."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from benchmarks.contenders.hand import INTERVAL, LR, MAX_NORM, MIN_LR, MOMENTUM
from benchmarks.rounds import Problem, ReadyLoader, TurnLoader

Batch = dict[str, torch.Tensor]


class Model(nn.Module):
    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.net, self.loss_fn = problem.model(), nn.CrossEntropyLoss()

    def forward(self, inputs: Any, labels: Any) -> dict[str, Any]:
        predictions = self.net(inputs)
        return {"loss": self.loss_fn(predictions, labels), "logits": predictions}


class AsDicts:
    """Batches as dicts, which the Trainer expects."""

    def __init__(self, batches: Any) -> None:
        self.batches, self.dataset = batches, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Any:
        for inputs, targets in self.batches:
            yield {"inputs": inputs, "labels": targets}


class WithOurLoader(Trainer):
    batches: Any = None
    val_batches: Any = None

    def get_train_dataloader(self) -> Any:
        return AsDicts(self.batches)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return AsDicts(self.val_batches)


class Average(TrainerCallback):
    """An average of the weights, which the Trainer lacks."""

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(MOMENTUM))

    def on_step_end(
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        self.average.update_parameters(model)


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    options = {
        "logging_strategy": "no",
        "save_strategy": "no",
        "max_grad_norm": 0.0,
        "lr_scheduler_type": "constant",
    }
    _train(loader, problem, epochs, options, {})


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    options = {
        "logging_steps": INTERVAL,
        "save_strategy": "epoch",
        "save_total_limit": 5,
        "eval_strategy": "epoch",
        "max_grad_norm": MAX_NORM,
        "lr_scheduler_type": "cosine_with_min_lr",
        "lr_scheduler_kwargs": {"min_lr": MIN_LR},
        "per_device_eval_batch_size": problem.batch_size,
    }

    def accuracy(output: Any) -> dict[str, float]:
        return {"accuracy": float((output.predictions.argmax(-1) == output.label_ids).mean())}

    _train(
        loader,
        problem,
        epochs,
        options,
        {"eval_dataset": [], "compute_metrics": accuracy, "callbacks": [Average()]},
    )


def _train(
    loader: TurnLoader,
    problem: Problem,
    epochs: int,
    options: dict[str, Any],
    parts: dict[str, Any],
) -> None:
    model = Model(problem)
    with tempfile.TemporaryDirectory() as name:
        arguments = TrainingArguments(
            name,
            num_train_epochs=epochs,
            learning_rate=LR,
            use_cpu=True,
            disable_tqdm=True,
            report_to=[],
            remove_unused_columns=False,
            per_device_train_batch_size=problem.batch_size,
            optim="sgd",
            optim_args="momentum=0.9",
            label_names=["labels"],
            **options,
        )
        trainer = WithOurLoader(model, arguments, train_dataset=loader.dataset, **parts)
        trainer.remove_callback(PrinterCallback)
        trainer.batches, trainer.val_batches = loader, ReadyLoader(problem)
        trainer.train()
