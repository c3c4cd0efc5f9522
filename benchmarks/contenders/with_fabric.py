"""Lightning Fabric: a loop by hand, with Fabric's steps."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from benchmarks.contenders.hand import INTERVAL, LR, MAX_NORM, MIN_LR, MOMENTUM, Log, parts
from benchmarks.contenders.scoring import score
from benchmarks.rounds import Problem, TurnLoader


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    fabric, model, optimizer, loss_fn = _parts(problem)
    model.train()
    for _ in range(epochs):
        for inputs, targets in loader:
            loss = loss_fn(model(inputs), targets)
            fabric.backward(loss)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    fabric, model, optimizer, loss_fn = _parts(problem)
    plain = model.module
    average = AveragedModel(plain, multi_avg_fn=get_ema_multi_avg_fn(MOMENTUM))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer.optimizer, epochs * len(loader), MIN_LR
    )
    batches, done = problem.batches(problem.validation, seed=1), 0
    assert optimizer.param_groups[0]["lr"] == LR
    with tempfile.TemporaryDirectory() as name:
        log = Log(Path(name))
        model.train()
        for epoch in range(epochs):
            losses = []
            for inputs, targets in loader:
                loss = loss_fn(model(inputs), targets)
                fabric.backward(loss)
                fabric.clip_gradients(model, optimizer, max_norm=MAX_NORM)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                schedule.step()
                average.update_parameters(plain)
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
            content = {
                "model": model,
                "optimizer": optimizer,
                "average": average.state_dict(),
                "iter": done,
            }
            fabric.save(f"{name}/epoch_{epoch + 1}.ckpt", content)


def _parts(problem: Problem) -> tuple[Fabric, Any, Any, Any]:
    model, optimizer, loss_fn = parts(problem)
    fabric = Fabric(accelerator="cpu", devices=1)
    return fabric, *fabric.setup(model, optimizer), loss_fn
