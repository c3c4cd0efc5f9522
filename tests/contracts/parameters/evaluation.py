"""Parameters of validation and test hooks: observed are the results, and when there are any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from hookline import HOOKS, make_loader
from hookline.dist import World
from hookline.events import Writer
from hookline.hooks import CheckpointHook, LambdaHook, PeriodicWriterHook
from tests.contracts.parameters.rows import Config, Row, rows
from tests.contracts.training import Scripted, files_below, messages_of, train
from tests.helpers import batches, make_runner
from tests.text_parts import NextLetter, knowing_model


def validations(config: Config, folder: Path) -> list[tuple[int, dict[str, float]]]:
    """Return the iterations after which a run of six epochs validates, and the results."""
    seen: list[tuple[int, dict[str, float]]] = []

    def note(runner: Any) -> None:
        seen.append((runner.iter, dict(runner.metrics)))

    train(folder, config, LambdaHook(after_val_epoch=note), train_loader=batches(2), max_epochs=6)
    return seen


def best_results(config: Config, folder: Path) -> dict[str, Any]:
    """Return the best results of two metrics whose names show no direction."""
    metrics = {"quux": Scripted(1.0, 0.5, 2.0), "corge": Scripted(3.0, 4.0, 2.0)}
    return train(folder, config, metrics=metrics, train_loader=batches(1), max_epochs=3).best


def files(config: Config, folder: Path) -> list[str]:
    """Return the checkpoints of a run whose CheckpointHook keeps no best one itself."""
    train(folder, config, CheckpointHook(save_best=False))
    return files_below(folder, "*.pth")


class SelfEvaluating(torch.utils.data.TensorDataset):
    """A data set that evaluates predictions itself."""

    def evaluate(self, predictions: Any) -> dict[str, float]:
        return {"own": float(len(predictions))}


def results_of_self_evaluating_data(config: Config, folder: Path) -> list[str]:
    """Return the names of the results on a data set that evaluates predictions itself."""
    data = SelfEvaluating(*batches(1)[0])
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    return sorted(train(folder, config, val_loader=loader).metrics)


def buffers_broadcast(config: Config, folder: Path) -> int:
    """Return how often the buffers of the model are given to all processes."""
    calls = []

    class NotingWorld(World):
        def broadcast_buffers(self, buffers: Any) -> None:
            calls.append(list(buffers))

    runner = make_runner(folder, HOOKS.build(config), val_loader=batches(1))
    runner.world = NotingWorld()
    runner.train()
    return len(calls)


def messages_logged(config: Config, folder: Path) -> int:
    """Return how many messages a test over six batches logs."""
    with messages_of("[Testing]") as messages:
        make_runner(folder, HOOKS.build(config), test_loader=batches(6)).test()
    return len(messages)


def timed_iterations(config: Config, folder: Path) -> int:
    """Return how many of a test's eight iterations are timed."""
    hook: Any = HOOKS.build(config)
    make_runner(folder, hook, test_loader=batches(8)).test()
    calls: int = hook.timers["iter"].calls
    return calls


def constant_result(model: Any, loader: Any) -> dict[str, float]:
    return {"accuracy": 0.25}


def train_metrics(config: Config, folder: Path) -> dict[str, float]:
    """Return the last metrics of the training batches."""
    latest = train(folder, config).events.latest()
    return {name: value for name, value in latest.items() if name.startswith("train/")}


class Texts(Writer):
    """A writer that keeps texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, record: Any) -> None:
        self.texts.append(record.value)


def generated(config: Config, folder: Path) -> tuple[dict[str, float], str]:
    """Return the results of generated texts and the table of the report."""
    writer = Texts()
    runner = make_runner(
        folder,
        HOOKS.build(config),
        PeriodicWriterHook([writer]),
        model=knowing_model(),
        val_loader=make_loader(NextLetter(9), batch_size=4),
        loss_fn=None,
    )
    results = {name: value for name, value in runner.validate().items() if name != "val_loss"}
    return results, writer.texts[0]


EVALUATION = [
    *rows(
        validations,
        dataloader=(None, batches(1, seed=8)),
        interval=(1, 2),
        by_epoch=(True, False),
        start=(0, 3),
        test_fn=(None, constant_result),
    ),
    *rows(best_results, {"rule": "less"}, metric=("quux", "corge")),
    *rows(best_results, {"metric": "quux"}, rule=("greater", "less")),
    *rows(files, save_best=("accuracy", False)),
    *rows(results_of_self_evaluating_data, efficient_test=(False, True)),
]

ROWS: dict[str, list[Row]] = {
    "EvalHook": EVALUATION,
    "DistEvalHook": [*EVALUATION, *rows(buffers_broadcast, broadcast_bn_buffer=(True, False))],
    "TrainMetricsHook": rows(train_metrics, metrics=(["accuracy"], ["top2"]), interval=(None, 3)),
    "GenerationHook": rows(
        generated,
        {"max_new_tokens": 3},
        metrics=(["exact_match"], {"same": {"type": "exact_match"}}),
        num_examples=(8, 2),
    )
    + rows(generated, max_new_tokens=(32, 1)),
    "TestHook": [
        *rows(messages_logged, cfg_filename=("", "some.yaml"), logperiod=(10, 2)),
        *rows(timed_iterations, num_warmup=(5, 2)),
    ],
}
