"""The loop by hand: bare, and with everything that a typical run has."""

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

LR = 0.01
MIN_LR = 0.0001
MAX_NORM = 1.0
INTERVAL = 50  # iterations between two log lines
MOMENTUM = 0.999
AVERAGED = ("loss", "grad_norm", "time", "data_time")


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
    """Train with logging, a schedule, clipping, an average, validation and checkpoints.

    It writes the same files as Hookline, and never leaves one half written.
    """
    model, optimizer, loss_fn = parts(problem)
    params = list(model.parameters())
    group = optimizer.param_groups[0]
    average = [param.detach().clone() for param in params]
    val_batches = problem.batches(problem.validation, seed=1)
    total = epochs * len(loader)
    done = 0
    with tempfile.TemporaryDirectory() as name:
        log = Log(Path(name))
        model.train()
        for epoch in range(epochs):
            values: dict[str, list[float]] = {name: [] for name in AVERAGED}
            waiting = ended = time.perf_counter()
            for inputs, targets in loader:
                values["data_time"].append(time.perf_counter() - waiting)
                group["lr"] = cosine(done / total)
                loss = loss_fn(model(inputs), targets)
                loss.backward()
                values["grad_norm"].append(nn.utils.clip_grad_norm_(params, MAX_NORM).item())
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                with torch.no_grad():
                    torch._foreach_lerp_(average, params, 1 - MOMENTUM)
                values["loss"].append(loss.item())
                done += 1
                now = time.perf_counter()
                values["time"].append(now - ended)
                ended = now
                if done % INTERVAL == 0:
                    log.train(epoch + 1, done, total, values, group["lr"])
                waiting = time.perf_counter()
            result = validate(model, params, average, val_batches, loss_fn)
            log.write("val", epoch + 1, done, result)
            save(Path(name), model, optimizer, average, epoch, done, result)
        log.close()


class Log:
    """A log with a line of text and a line of JSON for each entry."""

    def __init__(self, folder: Path) -> None:
        self.rows = (folder / "log.jsonl").open("w")
        # Not from `getLogger`: other contenders configure the loggers of the process.
        self.logger = logging.Logger(f"by hand {folder.name}")
        self.handler = logging.FileHandler(folder / "run.log")
        self.handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self.logger.addHandler(self.handler)

    def train(
        self, epoch: int, done: int, total: int, values: dict[str, list[float]], lr: float
    ) -> None:
        """Write the means of the last interval, the learning rate and the time to the end."""
        means = {name: sum(numbers[-INTERVAL:]) / INTERVAL for name, numbers in values.items()}
        self.write("train", epoch, done, {**means, "lr": lr, "eta": means["time"] * (total - done)})

    def write(self, mode: str, epoch: int, done: int, scalars: dict[str, float]) -> None:
        row = {"mode": mode, "epoch": epoch, "iter": done, "time": time.time(), **scalars}
        self.rows.write(json.dumps(row) + "\n")
        self.rows.flush()
        text = "  ".join(f"{name} {value:.4g}" for name, value in scalars.items())
        self.logger.info("epoch %d iter %d  %s", epoch, done, text)

    def close(self) -> None:
        self.rows.close()
        self.handler.close()


@torch.no_grad()
def validate(
    model: nn.Module, params: list[Any], average: list[Any], batches: list[Any], loss_fn: nn.Module
) -> dict[str, float]:
    """Return the loss and accuracy of the averaged weights."""
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
    """Write one file under two names, in one step, and delete the sixth newest file."""
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "average": average,
        "epoch": epoch,
        "iter": done,
    }
    path = folder / f"epoch_{epoch + 1}.pth"
    partial = folder / "partial"
    with partial.open("wb") as file:
        torch.save({**content, "metrics": result, "rng": torch.get_rng_state()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    (folder / "link").unlink(missing_ok=True)
    os.link(path, folder / "link")
    os.replace(folder / "link", folder / "last.pth")
    (folder / f"epoch_{epoch - 4}.pth").unlink(missing_ok=True)
