"""Hookline: OptimizerHook alone, and the default hooks with everything that a typical run has."""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks.contenders.hand import MAX_NORM, MIN_LR, MOMENTUM, parts
from benchmarks.rounds import Problem, TurnLoader
from hookline import BaseHook, Runner
from hookline.hooks.builder import DEFAULT_HOOKS

TYPICAL = [
    {"type": "OptimizerHook", "grad_clip": {"max_norm": MAX_NORM}},
    {"type": "CosineAnnealingLrUpdaterHook", "min_lr": MIN_LR, "by_epoch": False},
    {"type": "EMAHook", "momentum": MOMENTUM, "warm_up": 0},
]


class Idle(BaseHook):
    """A hook with nothing to do in an iteration."""

    def before_run(self, runner: Any) -> None: ...

    def after_train(self, runner: Any) -> None:
        return None


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    drop = [name for name in DEFAULT_HOOKS if name != "OptimizerHook"]
    _train(loader, problem, epochs, drop_hooks=drop)


def typical(loader: TurnLoader, problem: Problem, epochs: int, idle: int = 0) -> None:
    hooks = [*TYPICAL, *(Idle() for _ in range(idle))]
    _train(
        loader,
        problem,
        epochs,
        hooks=hooks,
        metrics=["accuracy"],
        val_loader=problem.batches(problem.validation, seed=1),
    )


def with_idle_hooks(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    typical(loader, problem, epochs, idle=10)


def _train(loader: TurnLoader, problem: Problem, epochs: int, **options: Any) -> None:
    model, optimizer, loss_fn = parts(problem)
    with tempfile.TemporaryDirectory() as folder:
        Runner(
            model,
            train_loader=loader,
            optimizer=optimizer,
            loss_fn=loss_fn,
            max_epochs=epochs,
            work_dir=folder,
            device="cpu",
            **options,
        ).train()
