"""Eight training loops by hand, and the same as runs of Hookline."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import (
    CheckpointHook,
    EMAHook,
    EvalHook,
    OptimizerHook,
    SAMHook,
    ValueUpdaterHook,
    WSDLrUpdaterHook,
)
from hookline.optim import OPTIMIZERS
from hookline.optim.build import build_optimizers
from tests.dist.optim_jobs import Gan
from tests.helpers import batches, small_model
from tests.optim.schedule_free import ScheduleFreeSGD
from tests.waiting import wait_until

EPOCHS = 3
LENGTH = 4  # batches of an epoch
SAVE_AT = 3  # iterations between two checkpoints
KILL_AT = 9  # in the last epoch
DATA = batches(LENGTH)
GAN_DATA = batches(LENGTH, features=8)
VAL = batches(2, seed=1)
RHO = 0.1
MOMENTUM_OF_AVERAGE = 0.8
Losses = list[float]


class Loop(NamedTuple):
    """A loop by hand, and the parts of the run that does the same."""

    by_hand: Callable[[], tuple[nn.Module, Losses]]
    parts: Callable[[], dict[str, Any]]


class Recorder(BaseHook):
    """Keeps the loss of every iteration, and kills the process where it is asked to.

    Only when a checkpoint is complete: the run then resumes in the middle.
    """

    def __init__(self, kill_at: int | None = None) -> None:
        self.kill_at = kill_at
        self.losses: dict[int, float] = {}

    def after_forward(self, runner: Any) -> None:
        if runner.iter not in self.losses:  # A closure evaluates the batch again.
            self.losses[runner.iter] = runner.outputs["loss"].item()
        if runner.iter == self.kill_at:
            manifest = Path(runner.work_dir) / "checkpoints.json"
            wait_until(manifest.exists, "the first checkpoint")
            os.kill(os.getpid(), signal.SIGKILL)


def make_run(
    name: str,
    folder: Path,
    kill_at: int | None = None,
    more_hooks: Sequence[BaseHook] = (),
    **options: Any,
) -> Any:
    """Return a runner of a loop and the recorder of its losses."""
    recorder = Recorder(kill_at)
    parts = LOOPS[name].parts()
    hooks = [
        CheckpointHook(by_epoch=False, interval=SAVE_AT, save_best=False),
        EvalHook(),
        recorder,
        *parts.pop("hooks", []),
        *more_hooks,
    ]
    given = {"train_loader": DATA, "val_loader": VAL, "loss_fn": nn.CrossEntropyLoss(), **parts}
    drop = ["ReportHook", "LoggerHook"]
    common = {"max_epochs": EPOCHS, "work_dir": folder, "seed": 1, "drop_hooks": drop, **options}
    return Runner(**given, hooks=hooks, **common), recorder


def train_until_killed(folder: Path, name: str) -> None:
    """Train in a process that is killed in the last epoch."""
    make_run(name, folder, KILL_AT)[0].train()


def train_all(folder: Path, **options: Any) -> dict[str, Any]:
    """Train with every loop, one after the other; ranks share the batches, so as to agree."""
    results = {}
    for index, name in enumerate(LOOPS):
        runner, recorder = make_run(name, folder / str(index), **options)
        runner.train()
        weights = [each.detach().clone() for each in runner.model.parameters()]
        results[name] = {"losses": recorder.losses, "weights": weights}
    return results


def make_averaged_run(folder: Path, kill_at: int | None = None, **options: Any) -> Any:
    """Return a runner of two optimizers with an average of the weights, and the EMAHook."""
    hook = EMAHook(momentum=MOMENTUM_OF_AVERAGE, warm_up=0)
    runner, _ = make_run("Muon and AdamW", folder, kill_at, [hook], **options)
    return runner, hook


def train_averaged_until_killed(folder: Path) -> None:
    """Train with an average in a process that is killed in the last epoch."""
    make_averaged_run(folder, KILL_AT)[0].train()


def cross_entropy(model: nn.Module, batch: Any) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def simple_loop(
    model: nn.Module,
    optimizers: list[torch.optim.Optimizer],
    before: Callable[[int], None] = lambda iteration: None,
    clip: float | None = None,
) -> tuple[nn.Module, Losses]:
    losses = []
    for iteration in range(EPOCHS * LENGTH):
        before(iteration)
        loss = cross_entropy(model, DATA[iteration % LENGTH])
        losses.append(loss.item())
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return model, losses


def built(config: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Return the parts of a run with the optimizers of a config."""
    model = small_model()
    return {"model": model, "optimizer": build_optimizers(OPTIMIZERS, config, model), **parts}


def groups_by_hand() -> tuple[nn.Module, Losses]:
    model = small_model()
    groups = [
        {"params": [model[0].weight, model[2].weight], "weight_decay": 0.5},
        {"params": [model[0].bias, model[2].bias], "weight_decay": 0.0},
    ]
    return simple_loop(model, [torch.optim.AdamW(groups, lr=0.01)])


def layers_by_hand() -> tuple[nn.Module, Losses]:
    model = small_model()
    groups = [
        {"params": model[0].parameters(), "lr": 0.02 * 0.5},
        {"params": model[2].parameters(), "lr": 0.02},
    ]
    return simple_loop(model, [torch.optim.AdamW(groups)])


def muon_by_hand() -> tuple[nn.Module, Losses]:
    model = small_model()
    muon = torch.optim.Muon([model[0].weight, model[2].weight], lr=0.02)
    adam = torch.optim.AdamW([model[0].bias, model[2].bias], lr=0.01)
    return simple_loop(model, [muon, adam], clip=0.5)


def schedule_free_by_hand() -> tuple[nn.Module, Losses]:
    model = small_model()
    optimizer = ScheduleFreeSGD(model.parameters(), beta=0.7)
    losses = []
    for _ in range(EPOCHS):
        optimizer.train()
        for batch in DATA:
            loss = cross_entropy(model, batch)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        optimizer.eval()
        with torch.no_grad():
            for batch in VAL:
                cross_entropy(model, batch)
    return model, losses


def lbfgs_by_hand() -> tuple[nn.Module, Losses]:
    model = small_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    losses = []
    for iteration in range(EPOCHS * LENGTH):

        def closure(batch: Any = DATA[iteration % LENGTH]) -> torch.Tensor:
            optimizer.zero_grad()
            loss = cross_entropy(model, batch)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return model, losses


def sam_by_hand() -> tuple[nn.Module, Losses]:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    parameters = list(model.parameters())
    losses = []
    for iteration in range(EPOCHS * LENGTH):
        batch = DATA[iteration % LENGTH]
        loss = cross_entropy(model, batch)
        losses.append(loss.item())
        loss.backward()
        old = [each.detach().clone() for each in parameters]
        norm = torch.nn.utils.get_total_norm([each.grad for each in parameters])
        with torch.no_grad():
            for each in parameters:
                each.add_(each.grad * (RHO / (norm + 1e-12)))
        optimizer.zero_grad()
        cross_entropy(model, batch).backward()
        with torch.no_grad():
            for each, value in zip(parameters, old, strict=True):
                each.copy_(value)
        optimizer.step()
        optimizer.zero_grad()
    return model, losses


def gan_optimizers(model: Gan) -> dict[str, torch.optim.Optimizer]:
    return {
        "generator": torch.optim.Adam(model.generator.parameters(), lr=0.01),
        "critic": torch.optim.Adam(model.critic.parameters(), lr=0.02),
    }


def gan_by_hand() -> tuple[nn.Module, Losses]:
    model = Gan()
    optimizers = gan_optimizers(model)
    losses = []
    for _ in range(EPOCHS):
        for batch in GAN_DATA:
            losses.append(model.train_step(batch, optimizers)["loss"].item())
    return model, losses


def gan_parts() -> dict[str, Any]:
    model = Gan()
    return {
        "model": model,
        "optimizer": gan_optimizers(model),
        "train_loader": GAN_DATA,
        "val_loader": None,
        "loss_fn": None,
    }


def wsd_by_hand() -> tuple[nn.Module, Losses]:
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.4)
    group = optimizer.param_groups[0]
    end = EPOCHS * LENGTH

    def schedule(iteration: int) -> None:
        rate = 0.01
        if iteration >= end - 6:
            rate = 0.01 + (0.0 - 0.01) * ((iteration - (end - 6)) / 6)
        if iteration < 3:
            rate = rate * (1 - (1 - iteration / 3) * (1 - 0.1))
        group["lr"] = rate
        group["weight_decay"] = 0.4 + (0.0 - 0.4) * (iteration / end)

    return simple_loop(model, [optimizer], schedule)


def wsd_parts() -> dict[str, Any]:
    wsd = WSDLrUpdaterHook(
        min_lr=0.0, decay_ratio=0.5, by_epoch=False, warmup="linear", warmup_iters=3
    )
    decay = ValueUpdaterHook("weight_decay", {"type": "linear", "to": 0.0}, by_epoch=False)
    config = {"type": "AdamW", "lr": 0.01, "weight_decay": 0.4}
    return built(config, hooks=[wsd, decay])


def schedule_free_parts() -> dict[str, Any]:
    model = small_model()
    return {"model": model, "optimizer": ScheduleFreeSGD(model.parameters(), beta=0.7)}


MUON = {
    "matrices": {"type": "Muon", "lr": 0.02, "params": "*.weight@2d"},
    "rest": {"type": "AdamW", "lr": 0.01},
}
DECAY = {"type": "AdamW", "lr": 0.01, "weight_decay": 0.5, "no_decay": ["bias"]}
LAYERS = {"type": "AdamW", "lr": 0.02, "layer_decay": 0.5}
MOMENTUM = {"type": "SGD", "lr": 0.1, "momentum": 0.9}

LOOPS = {
    "AdamW with two groups": Loop(groups_by_hand, lambda: built(DECAY)),
    "layer decay": Loop(layers_by_hand, lambda: built(LAYERS)),
    "Muon and AdamW": Loop(
        muon_by_hand, lambda: built(MUON, hooks=[OptimizerHook(grad_clip={"max_norm": 0.5})])
    ),
    "schedule-free": Loop(schedule_free_by_hand, schedule_free_parts),
    "LBFGS": Loop(lbfgs_by_hand, lambda: built({"type": "LBFGS", "max_iter": 3})),
    "SAM": Loop(sam_by_hand, lambda: built(MOMENTUM, hooks=[SAMHook(rho=RHO)])),
    "GAN": Loop(gan_by_hand, gan_parts),
    "WSD and weight decay": Loop(wsd_by_hand, wsd_parts),
}
