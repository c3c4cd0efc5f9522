"""The loop by hand: bare, and with logging, a schedule, clipping, an average, validation and checkpoints."""

from __future__ import annotations

import json
import logging
import math
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.rounds import Problem, TurnLoader

LR, MIN_LR, MAX_NORM, INTERVAL, MOMENTUM = 0.01, 0.0001, 1.0, 50, 0.999


def parts(problem: Problem) -> tuple[nn.Module, torch.optim.Optimizer, nn.Module]:
    model = problem.model()
    return model, torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9), nn.CrossEntropyLoss()


def cosine(progress: float) -> float:
    return MIN_LR + 0.5 * (LR - MIN_LR) * (1 + math.cos(math.pi * progress))


def bare(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    model, optimizer, loss_fn = parts(problem)
    model.train()
    for _ in range(epochs):
        for inputs, targets in loader:
            loss = loss_fn(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    """What a careful user writes, all in one function: the same files on the same disk, none of them ever half written."""
    model, optimizer, loss_fn = parts(problem)
    params, group = list(model.parameters()), optimizer.param_groups[0]
    average = [param.detach().clone() for param in params]
    val_batches = problem.batches(problem.validation, seed=1)
    total, done = epochs * len(loader), 0
    with tempfile.TemporaryDirectory() as name:
        log = Log(Path(name))
        model.train()
        for epoch in range(epochs):
            losses, norms, times, waits = [], [], [], []
            asked = ended = time.perf_counter()
            for inputs, targets in loader:
                waits.append(time.perf_counter() - asked)
                group["lr"] = cosine(done / total)
                loss = loss_fn(model(inputs), targets)
                loss.backward()
                norms.append(nn.utils.clip_grad_norm_(params, MAX_NORM).item())
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                with torch.no_grad():
                    torch._foreach_lerp_(average, params, 1 - MOMENTUM)
                losses.append(loss.item())
                done += 1
                now = time.perf_counter()
                times.append(now - ended)
                ended = now
                if done % INTERVAL == 0:
                    means = [
                        sum(values[-INTERVAL:]) / INTERVAL
                        for values in (losses, norms, times, waits)
                    ]
                    eta = means[2] * (total - done)
                    log.train(
                        epoch + 1,
                        done,
                        dict(zip(("loss", "grad_norm", "time", "data_time"), means, strict=True)),
                        group["lr"],
                        eta,
                    )
                asked = time.perf_counter()
            result = validate(model, params, average, val_batches, loss_fn)
            log.write("val", epoch + 1, done, result)
            save(Path(name), model, optimizer, average, epoch, done, result)
        log.close()


class Log:
    """A line for people and one for programs."""

    def __init__(self, folder: Path) -> None:
        self.rows = (folder / "log.jsonl").open("w")
        self.logger = logging.Logger(
            f"by hand {folder.name}"
        )  # not among those that are configured for all
        self.handler = logging.FileHandler(folder / "run.log")
        self.handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self.logger.addHandler(self.handler)

    def train(self, epoch: int, done: int, means: dict[str, float], lr: float, eta: float) -> None:
        self.write("train", epoch, done, {**means, "lr": lr, "eta": eta})

    def write(self, mode: str, epoch: int, done: int, scalars: dict[str, float]) -> None:
        self.rows.write(
            json.dumps({"mode": mode, "epoch": epoch, "iter": done, "time": time.time(), **scalars})
            + "\n"
        )
        self.rows.flush()
        self.logger.info(
            "epoch %d iter %d  %s",
            epoch,
            done,
            "  ".join(f"{name} {value:.4g}" for name, value in scalars.items()),
        )

    def close(self) -> None:
        self.rows.close()
        self.handler.close()


@torch.no_grad()
def validate(
    model: nn.Module, params: list[Any], average: list[Any], batches: list[Any], loss_fn: nn.Module
) -> dict[str, float]:
    """Loss and accuracy of the average."""
    own = [param.data for param in params]
    for param, value in zip(params, average, strict=True):
        param.data = value
    model.eval()
    loss, right, count = 0.0, 0, 0
    for inputs, targets in batches:
        predictions = model(inputs)
        loss += loss_fn(predictions, targets).item() * len(targets)
        right += int((predictions.argmax(1) == targets).sum())
        count += len(targets)
    model.train()
    for param, value in zip(params, own, strict=True):
        param.data = value
    return {"val_loss": loss / count, "accuracy": right / count}


def save(
    folder: Path,
    model: nn.Module,
    optimizer: Any,
    average: list[Any],
    epoch: int,
    done: int,
    result: dict[str, float],
) -> None:
    """One file under two names, complete or not there at all; the oldest but five goes."""
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "average": average,
        "epoch": epoch,
        "iter": done,
    }
    path, partly = folder / f"epoch_{epoch + 1}.pth", folder / "partly"
    with partly.open("wb") as file:
        torch.save({**content, "metrics": result, "rng": torch.get_rng_state()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partly, path)
    (folder / "link").unlink(missing_ok=True)
    os.link(path, folder / "link")
    os.replace(folder / "link", folder / "last.pth")
    (folder / f"epoch_{epoch - 4}.pth").unlink(missing_ok=True)
