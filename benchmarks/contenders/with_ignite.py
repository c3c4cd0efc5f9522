"""PyTorch Ignite, with its own handlers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.handlers import Checkpoint, CosineAnnealingScheduler, DiskSaver, EMAHandler
from ignite.metrics import Accuracy, Loss, RunningAverage

from benchmarks.contenders.hand import INTERVAL, LR, MAX_NORM, MIN_LR, MOMENTUM, Log, parts
from benchmarks.rounds import Problem, TurnLoader


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    model, optimizer, loss_fn = parts(problem)
    Engine(_step(model, optimizer, loss_fn)).run(loader, max_epochs=epochs)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    model, optimizer, loss_fn = parts(problem)
    trainer = Engine(_step(model, optimizer, loss_fn, clip=True))
    RunningAverage(output_transform=lambda output: output).attach(trainer, "loss")
    schedule = CosineAnnealingScheduler(
        optimizer, "lr", LR, MIN_LR, cycle_size=2 * epochs * len(loader)
    )
    trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
    average = EMAHandler(model, momentum=1 - MOMENTUM)
    average.attach(trainer)
    evaluator = create_supervised_evaluator(
        average.ema_model, metrics={"accuracy": Accuracy(), "val_loss": Loss(loss_fn)}
    )
    batches = problem.batches(problem.validation, seed=1)
    with tempfile.TemporaryDirectory() as name:
        log = Log(Path(name))
        objects = {
            "model": model,
            "optimizer": optimizer,
            "average": average.ema_model,
            "trainer": trainer,
        }
        saver = Checkpoint(objects, DiskSaver(name, require_empty=False), n_saved=5)

        @trainer.on(Events.ITERATION_COMPLETED(every=INTERVAL))
        def report(engine: Engine) -> None:
            state = engine.state
            log.write(
                "train",
                state.epoch,
                state.iteration,
                {"loss": state.metrics["loss"], "lr": optimizer.param_groups[0]["lr"]},
            )

        @trainer.on(Events.EPOCH_COMPLETED)
        def validate(engine: Engine) -> None:
            metrics = evaluator.run(batches).metrics
            log.write("val", engine.state.epoch, engine.state.iteration, metrics)

        trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
        trainer.run(loader, max_epochs=epochs)


def _step(model: Any, optimizer: Any, loss_fn: Any, clip: bool = False) -> Any:
    def step(engine: Engine, batch: Any) -> Any:
        model.train()
        inputs, targets = batch
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item() if clip else loss

    return step
