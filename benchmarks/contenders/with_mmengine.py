"""MMEngine, with its own hooks."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.model import BaseModel
from mmengine.runner import Runner

from benchmarks.contenders.hand import INTERVAL, MAX_NORM, MIN_LR, MOMENTUM, parts
from benchmarks.rounds import Problem, ReadyLoader, TurnLoader


class Model(BaseModel):
    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.net, self.made_optimizer, self.loss_fn = parts(problem)

    def forward(self, inputs: Any, targets: Any, mode: str = "tensor") -> Any:
        predictions = self.net(inputs)
        loss = self.loss_fn(predictions, targets)
        return {"loss": loss} if mode == "loss" else (predictions, targets, loss)

    def train_step(self, data: Any, optim_wrapper: Any) -> Any:
        return super().train_step(data, optim_wrapper)


class Score(BaseMetric):
    def process(self, data_batch: Any, data_samples: Any) -> None:
        predictions, targets, loss = data_samples
        self.results.append(
            (int((predictions.argmax(1) == targets).sum()), len(targets), loss.item())
        )

    def compute_metrics(self, results: list[Any]) -> dict[str, float]:
        right, counts, losses = zip(*results, strict=True)
        return {"accuracy": sum(right) / sum(counts), "val_loss": sum(losses) / len(losses)}


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    hooks = dict.fromkeys(
        ("timer", "logger", "param_scheduler", "checkpoint", "sampler_seed", "runtime_info")
    )
    _run(loader, problem, epochs, default_hooks=hooks)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    hooks = {
        "logger": {"type": "LoggerHook", "interval": INTERVAL},
        "checkpoint": {"type": "CheckpointHook", "interval": 1, "max_keep_ckpts": 5},
        "sampler_seed": None,
    }
    schedule = {
        "type": "CosineAnnealingLR",
        "T_max": epochs * len(loader),
        "eta_min": MIN_LR,
        "by_epoch": False,
    }
    _run(
        loader,
        problem,
        epochs,
        clip={"max_norm": MAX_NORM},
        default_hooks=hooks,
        param_scheduler=[schedule],
        custom_hooks=[{"type": "EMAHook", "momentum": 1 - MOMENTUM}],
        val_cfg={},
        val_evaluator=Evaluator([Score()]),
        val_dataloader=ReadyLoader(problem),
    )


def _run(
    loader: TurnLoader,
    problem: Problem,
    epochs: int,
    clip: dict[str, float] | None = None,
    **options: Any,
) -> None:
    model = Model(problem)
    wrapper = {"type": "OptimWrapper", "optimizer": model.made_optimizer, "clip_grad": clip}
    with tempfile.TemporaryDirectory() as name:
        runner = Runner(
            model,
            work_dir=name,
            train_dataloader=loader,
            train_cfg={"by_epoch": True, "max_epochs": epochs},
            optim_wrapper=wrapper,
            experiment_name=f"{problem.name.split()[1]}{id(model)}",
            log_level=logging.INFO,
            **options,
        )
        for handler in runner.logger.handlers:
            if type(handler) is logging.StreamHandler:
                handler.setLevel(logging.CRITICAL)  # the log file keeps its level
        runner.train()
