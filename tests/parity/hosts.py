"""The loops that hooks run in. Each one trains the same model on the same batches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import hookline
from hookline.compat.dl_framework.trainers import BaseTrainer
from hookline.compat.mmcv.runner import EpochBasedRunner, IterBasedRunner
from hookline.compat.mmcv.runner.hooks import OptimizerHook as MMCVOptimizerHook
from hookline.compat.mmengine.evaluator import BaseMetric
from hookline.compat.mmengine.optim import OptimWrapper
from hookline.compat.mmengine.runner import Runner as MMEngineRunner
from hookline.compat.mmengine.runner.runner import DEFAULT_HOOKS
from hookline.engine import BaseRunner
from hookline.hooks import CheckpointHook, EvalHook, OptimizerHook
from hookline.metrics import build_metrics
from tests.parity.problem import (
    EPOCHS,
    LENGTH,
    SIZE,
    Batches,
    Images,
    make_model,
    make_optimizer,
    make_scheduler,
    measure,
    train_batches,
)

IMAGES = "tests.parity.problem.Images"

# Trains with hooks in a folder, and returns the runner that they saw.
Host = Callable[[Path, str, list[Any]], Any]


def with_evaluation(hooks: list[Any]) -> list[Any]:
    """Return hooks with one that validates after each epoch, unless one of them validates."""
    if any(isinstance(hook, EvalHook) for hook in hooks):
        return hooks
    saves = any(isinstance(hook, CheckpointHook) for hook in hooks)
    return [EvalHook(save_best=saves, metric="auto"), *hooks]


def has_owner(hooks: list[Any]) -> bool:
    return any(hook.site_method("optimize") is not None for hook in hooks)


def parts(folder: Path, hook: str, model: nn.Module) -> dict[str, Any]:
    """Return the parts of a runner besides its model, training data and hooks."""
    optimizer = make_optimizer(model)
    return {
        "optimizer": optimizer,
        "scheduler": make_scheduler(hook, optimizer),
        "val_loader": Batches(Images("val")),
        "test_loader": Batches(Images("test")),
        "loss_fn": nn.CrossEntropyLoss(),
        "metrics": build_metrics(["accuracy"]),
        "work_dir": folder,
        "seed": 1,
    }


def runner(folder: Path, hook: str, hooks: list[Any]) -> BaseRunner:
    """Train in a Runner, for two epochs."""
    return _run(folder, hook, hooks, train_batches(hook), EPOCHS)


def runner_of_one_epoch(folder: Path, hook: str, hooks: list[Any]) -> BaseRunner:
    """Train in a Runner, for one epoch of as many iterations."""
    return _run(folder, hook, hooks, train_batches(hook, EPOCHS), 1)


def _run(folder: Path, hook: str, hooks: list[Any], batches: Any, epochs: int) -> BaseRunner:
    model = make_model(hook)
    owners = [] if has_owner(hooks) else [OptimizerHook()]
    run = BaseRunner(
        model,
        batches,
        hooks=[*owners, *with_evaluation(hooks)],
        max_epochs=epochs,
        **parts(folder, hook, model),
    )
    return run.train()


def pull(folder: Path, hook: str, hooks: list[Any]) -> BaseRunner:
    """Train in `for batch in drive(…)`."""
    model = make_model(hook)
    given = parts(folder, hook, model)
    optimizer = given.pop("optimizer")
    batches = train_batches(hook)
    with hookline.drive(
        with_evaluation(hooks), model, optimizer, batches, max_epochs=EPOCHS, **given
    ) as run:
        model.train()
        for inputs, targets in run:
            scores = model(inputs)
            loss = nn.functional.cross_entropy(scores, targets)
            run.loss(loss, predictions=scores, targets=targets).backward()
            optimizer.step()
            optimizer.zero_grad()
    return run.runner


def push(folder: Path, hook: str, hooks: list[Any]) -> BaseRunner:
    """Train in a loop that reports epochs and batches to a Drive."""
    model = make_model(hook)
    given = parts(folder, hook, model)
    optimizer = given.pop("optimizer")
    with hookline.drive(
        with_evaluation(hooks),
        model,
        optimizer,
        max_epochs=EPOCHS,
        epoch_length=LENGTH,
        **given,
    ) as run:
        model.train()
        _push_epochs(run, model, optimizer, hook)
    return run.runner


def _push_epochs(run: Any, model: nn.Module, optimizer: torch.optim.Optimizer, hook: str) -> None:
    for _ in range(EPOCHS):
        run.begin_epoch()
        for inputs, targets in train_batches(hook):
            run.begin_batch((inputs, targets))
            scores = model(inputs)
            loss = nn.functional.cross_entropy(scores, targets)
            run.loss(loss, predictions=scores, targets=targets).backward()
            optimizer.step()
            optimizer.zero_grad()
            if not run.end_batch():
                return
        if not run.end_epoch():
            return


class MMCVSteps:
    """The methods that MMCV's runners call."""

    def train_step(self, data: Any, optimizer: Any, **options: Any) -> dict[str, Any]:
        inputs, targets = data
        scores = self(inputs)  # type: ignore[operator]
        loss = nn.functional.cross_entropy(scores, targets)
        return {"loss": loss, "predictions": scores, "targets": targets}

    val_step = train_step


def mmcv_epochs(folder: Path, hook: str, hooks: list[Any]) -> Any:
    """Train in MMCV's runner of epochs."""
    batches = train_batches(hook)
    return _run_mmcv(EpochBasedRunner, folder, hook, hooks, batches, max_epochs=EPOCHS)


def mmcv_iterations(folder: Path, hook: str, hooks: list[Any]) -> Any:
    """Train in MMCV's runner of iterations."""
    batches = train_batches(hook, EPOCHS)
    return _run_mmcv(IterBasedRunner, folder, hook, hooks, batches, max_iters=len(batches))


def _run_mmcv(
    cls: type, folder: Path, hook: str, hooks: list[Any], batches: Any, **length: int
) -> Any:
    model = make_model(hook, MMCVSteps)
    given = parts(folder, hook, model)
    logger = logging.getLogger("tests.parity")
    run = cls(model, optimizer=given["optimizer"], work_dir=str(folder), logger=logger, **length)
    run.loss_fn = given["loss_fn"]
    run.scheduler = given["scheduler"]
    run.val_loader = given["val_loader"]
    run.test_loader = given["test_loader"]
    run.evaluation.metrics = given["metrics"]
    if not has_owner(hooks):
        run.register_hook(MMCVOptimizerHook(), priority="ABOVE_NORMAL")
    for each in with_evaluation(hooks):
        run.register_hook(each)
    times = 1 if cls is EpochBasedRunner else len(batches)
    run.run([batches], [("train", times)])
    return run


class MMEngineSteps:
    """The methods that MMEngine's runner calls."""

    def train_step(self, data: Any, optim_wrapper: Any) -> dict[str, Any]:
        inputs, targets = data
        scores = self(inputs)  # type: ignore[operator]
        loss = nn.functional.cross_entropy(scores, targets)
        optim_wrapper.update_params(loss)
        return {"loss": loss, "predictions": scores, "targets": targets}

    def val_step(self, data: Any) -> Any:
        inputs, targets = data
        scores = self(inputs)  # type: ignore[operator]
        return scores, targets

    test_step = val_step


class MMEngineMetric(BaseMetric):
    """Accuracy and loss."""

    def process(self, data_batch: Any, data_samples: Any) -> None:
        self.results.append(data_samples)

    def compute_metrics(self, results: list[Any]) -> dict[str, float]:
        return measure(nn.Identity(), results)


def mmengine_epochs(folder: Path, hook: str, hooks: list[Any]) -> Any:
    """Train in MMEngine's loop of epochs, which validates by itself."""
    length = {"by_epoch": True, "max_epochs": EPOCHS, "val_interval": 1}
    return _run_mmengine(folder, hook, hooks, train_batches(hook), length)


def mmengine_iterations(folder: Path, hook: str, hooks: list[Any]) -> Any:
    """Train in MMEngine's loop of iterations, which validates by itself."""
    batches = train_batches(hook, EPOCHS)
    length = {"by_epoch": False, "max_iters": len(batches), "val_interval": len(batches)}
    return _run_mmengine(folder, hook, hooks, batches, length)


def _run_mmengine(
    folder: Path, hook: str, hooks: list[Any], batches: Any, length: dict[str, Any]
) -> Any:
    model = make_model(hook, MMEngineSteps)
    if any(isinstance(each, EvalHook) for each in hooks):
        length["val_begin"] = EPOCHS * LENGTH + 1  # never: the hook requests validations
    schedule = {"type": "StepLR", "step_size": 2, "by_epoch": False}
    run = MMEngineRunner(
        model,
        str(folder),
        train_dataloader=batches,
        val_dataloader=Batches(Images("val")),
        test_dataloader=Batches(Images("test")),
        train_cfg=length,
        val_cfg={},
        test_cfg={},
        optim_wrapper=OptimWrapper(make_optimizer(model)),
        param_scheduler=schedule if hook == "ParamSchedulerHook" else None,
        val_evaluator={"type": MMEngineMetric},
        test_evaluator={"type": MMEngineMetric},
        default_hooks=dict.fromkeys(DEFAULT_HOOKS),
        custom_hooks=hooks,
        randomness={"seed": 1},
        log_level="ERROR",
    )
    run.train()
    return run


def dl_framework(folder: Path, hook: str, hooks: list[Any]) -> BaseRunner:
    """Train in the trainer of `dl_framework`, from a config."""
    kind = type(make_model(hook)).__name__
    trainer = BaseTrainer(
        {
            "work_dir": str(folder),
            "seed": 1,
            "model": {"type": f"tests.parity.problem.{kind}"},
            "dataset": {
                "train": {"type": IMAGES, "is_spoiled": hook == "RollbackHook"},
                "val": {"type": IMAGES, "split": "val"},
                "test": {"type": IMAGES, "split": "test"},
            },
            "loader": {"batch_size": SIZE, "shuffle": False},
            "optimizer": {"type": "SGD", "lr": 0.02, "momentum": 0.9},
            "training": {"epochs": EPOCHS, "loss": "CrossEntropyLoss", "metrics": ["accuracy"]},
            "drop_hooks": list(hookline.hooks.builder.DEFAULT_HOOKS),
        }
    )
    trainer.scheduler = make_scheduler(hook, trainer.optimizer)
    owners = [] if has_owner(hooks) else [OptimizerHook()]
    trainer.register_hooks([*owners, *with_evaluation(hooks)])
    return trainer.train()


# Each host with the Runner that it is compared with.
HOSTS: dict[str, tuple[Host, Host]] = {
    "pull": (pull, runner),
    "push": (push, runner),
    "dl_framework": (dl_framework, runner),
    "mmcv epochs": (mmcv_epochs, runner),
    "mmcv iterations": (mmcv_iterations, runner_of_one_epoch),
    "mmengine epochs": (mmengine_epochs, runner),
    "mmengine iterations": (mmengine_iterations, runner_of_one_epoch),
}
