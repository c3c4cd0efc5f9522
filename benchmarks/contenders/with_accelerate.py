"""Accelerate: a loop by hand, with Accelerate's steps."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from benchmarks.contenders.hand import INTERVAL, MAX_NORM, MIN_LR, MOMENTUM, Log, parts
from benchmarks.contenders.scoring import score
from benchmarks.rounds import Problem, TurnLoader


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    accelerator, model, optimizer, loss_fn = _parts(problem)
    model.train()
    for _ in range(epochs):
        for inputs, targets in loader:
            loss = loss_fn(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    accelerator, model, optimizer, loss_fn = _parts(problem)
    average = AveragedModel(
        accelerator.unwrap_model(model), multi_avg_fn=get_ema_multi_avg_fn(MOMENTUM)
    )
    schedule = accelerator.prepare(
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader), MIN_LR)
    )
    batches, done = problem.batches(problem.validation, seed=1), 0
    with tempfile.TemporaryDirectory() as name:
        log = Log(Path(name))
        model.train()
        for epoch in range(epochs):
            losses = []
            for inputs, targets in loader:
                loss = loss_fn(model(inputs), targets)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), MAX_NORM)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad(set_to_none=True)
                average.update_parameters(accelerator.unwrap_model(model))
                losses.append(loss.item())
                done += 1
                if done % INTERVAL == 0:
                    lr = optimizer.param_groups[0]["lr"]
                    log.write(
                        "train",
                        epoch + 1,
                        done,
                        {"loss": sum(losses[-INTERVAL:]) / INTERVAL, "lr": lr},
                    )
            log.write("val", epoch + 1, done, score(average, batches, loss_fn))
            accelerator.save_state(f"{name}/epoch_{epoch + 1}")


def _parts(problem: Problem) -> tuple[Accelerator, Any, Any, Any]:
    model, optimizer, loss_fn = parts(problem)
    accelerator = Accelerator(cpu=True)
    return accelerator, *accelerator.prepare(model, optimizer), loss_fn
