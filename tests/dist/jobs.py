"""What the processes of the tests do."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import Runner, make_loader
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.engine import BaseHook
from hookline.hooks import DistEvalHook, EarlyStoppingHook, GenerationHook, RollbackHook
from hookline.remote import RemoteDirectory
from tests.dist.gate import gate_watchdogs
from tests.text_parts import NextLetter, knowing_model

SAMPLES = 103  # no multiple of anything


def data(samples: int = SAMPLES) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(samples, 8, generator=generator)
    return TensorDataset(inputs, (inputs[:, 0] + 0.3 * inputs[:, 1] > 0).long())


def network(dropout: float = 0.0, batch_norm: bool = False) -> nn.Sequential:
    torch.manual_seed(0)
    norm = [nn.BatchNorm1d(16)] if batch_norm else []
    return nn.Sequential(nn.Linear(8, 16), *norm, nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 2))


def runner(folder: Path, **options: Any) -> Runner:
    """A run; `batch_size` is that of all processes together."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    model = options.pop("model", None) or network(
        options.pop("dropout", 0.0), options.pop("batch_norm", False)
    )
    batch_size, val_samples = options.pop("batch_size", 16), options.pop("val_samples", 51)
    parts = {
        "train_loader": make_loader(data(), batch_size=batch_size // world, shuffle=True, seed=3),
        "val_loader": make_loader(data(val_samples), batch_size=8),
        "optimizer": torch.optim.AdamW(model.parameters(), lr=0.01)
        if options.pop("adam", False)
        else torch.optim.SGD(model.parameters(), 0.1),
        "loss_fn": nn.CrossEntropyLoss(),
        "metrics": ["accuracy", "f1"],
        "max_epochs": 3,
        "work_dir": folder / "run",
        "seed": 1,
    }
    return Runner(model, **{**parts, **options})


def weights(run: Runner) -> dict[str, torch.Tensor]:
    return {
        name: value.full_tensor() if hasattr(value, "full_tensor") else value.clone()
        for name, value in run.model.state_dict().items()
    }


def train(folder: Path, **options: Any) -> dict[str, Any]:
    run = runner(folder, **options)
    run.train()
    return {
        "weights": weights(run),
        "metrics": dict(run.metrics),
        "iter": run.iter,
        "epoch": run.epoch,
        "stop": str(run.stop_reason),
    }


class KillWhenMirrored(BaseHook):
    """Kills this process as soon as a mirror has a checkpoint, in the fourth iteration."""

    def __init__(self, url: str) -> None:
        self._url = url

    def after_train_iter(self, runner: Any) -> None:
        if runner.iter + 1 != 4:
            return
        remote = RemoteDirectory(self._url)
        found = None
        while found is None:
            manifest = read_manifest(remote)
            found = None if manifest is None else manifest.newest()
        os.kill(os.getpid(), signal.SIGKILL)


def train_with_mirror(
    folder: Path,
    environment: dict[str, str],
    hooks: list[Any],
    url: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train with a mirror in object storage; with its URL, die when it has a checkpoint."""
    os.environ.update(environment)
    if url is not None:
        hooks = [*hooks, KillWhenMirrored(url)]
    return train(folder, hooks=hooks, **options)


class Samples(BaseHook):
    """Notes which samples this process has trained on, by the first feature, which is unique."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def after_train_iter(self, runner: Any) -> None:
        self.seen += runner.batch[0][:, 0].tolist()


class StopAt(BaseHook):
    """Asks for a stop on one process only."""

    def __init__(self, rank: int, iteration: int) -> None:
        self._rank, self._iteration = rank, iteration

    def after_train_iter(self, runner: Any) -> None:
        if runner.world.rank == self._rank and runner.iter + 1 == self._iteration:
            runner.request_save()
            runner.request_stop("enough")


class Trouble(BaseHook):
    """Fails, hangs, or enters another collective, on one rank only.

    From then on the watchdogs' time runs.
    """

    def __init__(self, kind: str, rank: int, iteration: int, gate: Path) -> None:
        self._kind = kind
        self._rank = rank
        self._iteration = iteration
        self._gate = gate

    def before_train_iter(self, runner: Any) -> None:
        if runner.world.rank != self._rank or runner.iter + 1 != self._iteration:
            return
        if self._kind == "error":
            raise ValueError("this rank alone failed")
        self._gate.touch()
        if self._kind == "elsewhere":
            runner.world.barrier()
        while self._kind == "hang":
            signal.pause()


class OpenGate(BaseHook):
    """Lets the watchdogs' time run after an iteration."""

    def __init__(self, gate: Path, iteration: int) -> None:
        self._gate = gate
        self._iteration = iteration

    def after_train_iter(self, runner: Any) -> None:
        if runner.iter + 1 == self._iteration:
            self._gate.touch()


class BadLosses(BaseHook):
    """Makes the losses of rank 1 bad in some batches, and notes the batches that count."""

    def __init__(self, factors: dict[tuple[int, int], float]) -> None:
        self._factors = factors
        self.trained: dict[int, tuple[int, int]] = {}

    def after_forward(self, runner: Any) -> None:
        place = (runner.epoch, runner.batch_idx)
        self.trained[runner.iter] = place
        if runner.world.rank == 1:
            runner.outputs["loss"] = runner.outputs["loss"] * self._factors.get(place, 1.0)


def roll_back(folder: Path, spike: float) -> dict[str, Any]:
    """Train with a NaN and a spike on rank 1, then again without them and without their batches."""
    save = {"type": "CheckpointHook", "by_epoch": False, "interval": 2}
    hook = RollbackHook(spike=spike, skip_batches=1)
    bad = BadLosses({(1, 3): math.nan, (2, 4): 1e3})
    run = runner(folder, hooks=[save, hook, bad]).train()
    never_bad = RollbackHook()
    never_bad.skipped = hook.skipped
    other = runner(folder, hooks=[save, never_bad], work_dir=folder / "never_bad").train()
    return {
        "weights": weights(run),
        "never_bad": weights(other),
        "history": hook.history,
        "trained": [bad.trained[index] for index in range(run.iter)],
    }


def train_part(folder: Path, stop_at: int | None = None, **options: Any) -> dict[str, Any]:
    """Train on all data, or until one rank requests a stop; return what each rank saw."""
    seen = Samples()
    hooks = [seen, *options.pop("hooks", [])] + ([StopAt(0, stop_at)] if stop_at else [])
    run = runner(folder, hooks=hooks, **options)
    run.train()
    return {
        "seen": seen.seen,
        "iter": run.iter,
        "epoch": run.epoch,
        "inner": run.inner_iter,
        "stop": str(run.stop_reason),
        "weights": weights(run),
    }


def train_with_trouble(
    folder: Path, kind: str, rank: int, iteration: int, timeout: float, **options: Any
) -> None:
    gate = folder / "gate"
    gate_watchdogs(gate)
    hooks = [Trouble(kind, rank, iteration, gate)]
    runner(folder, hooks=hooks, strategy={"type": "ddp", "timeout": timeout}, **options).train()


def train_to_be_stopped(folder: Path, timeout: float) -> None:
    """Train for ever; the watchdogs' time runs when the test has stopped a rank."""
    gate_watchdogs(folder / "gate", patience=None)
    strategy = {"type": "ddp", "timeout": timeout}
    runner(folder, max_epochs=100_000, batch_norm=True, strategy=strategy).train()


class Unequal:
    """A loader without a length, which differs between the ranks."""

    def __iter__(self) -> Any:
        inputs, targets = data(8).tensors
        return iter([(inputs, targets)] * (7 if os.environ["RANK"] == "0" else 5))


def train_unequally(folder: Path, timeout: float) -> None:
    gate = folder / "gate"
    gate_watchdogs(gate)
    parts = {"train_loader": Unequal(), "hooks": [OpenGate(gate, 5)]}
    runner(folder, **parts, strategy={"type": "ddp", "timeout": timeout}).train()


def restarted_on(folder: Path, rank: int) -> float | None:
    """Return the first start of the job, after one machine's torchrun has restarted its ranks."""
    from hookline.dist import connect, first_launch_time

    os.environ["TORCHELASTIC_RESTART_COUNT"] = "1" if os.environ["RANK"] == str(rank) else "0"
    return first_launch_time(connect())


def talk(folder: Path, long: int = 0) -> dict[str, Any]:
    """What the small messages between processes come to."""
    from hookline.dist import connect

    world = connect()
    own = f"{world.rank}" * (long if world.rank else 1)
    texts = world.gather_text(own)
    return {
        "lengths": [len(text) for text in texts],
        "main": world.broadcast_str(f"from {world.rank}"),
        "sum": world.sum([float(world.rank + 1), 0.5]),
    }


class Judged(TensorDataset):
    """Data that judges predictions itself, and so must get all of them, in order."""

    def evaluate(self, predictions: list[torch.Tensor]) -> dict[str, float]:
        assert len(predictions) == len(self)
        right = [
            int(prediction.argmax()) == int(target)
            for prediction, target in zip(predictions, self.tensors[1], strict=True)
        ]
        return {
            "judged": sum(right) / len(right),
            "first": float(right[0]),
            "last": float(right[-1]),
        }


class LocalMetric:
    """A metric that knows nothing of other processes."""

    def reset(self) -> None:
        self.right = self.count = 0

    def update(self, preds: torch.Tensor, targets: torch.Tensor) -> None:
        self.right += int((preds.argmax(1) == targets).sum())
        self.count += len(targets)

    def compute(self) -> float:
        return self.right / self.count


def evaluate(folder: Path) -> dict[str, float]:
    inputs, targets = data(51).tensors
    run = runner(
        folder,
        val_loader=make_loader(Judged(inputs, targets), batch_size=8),
        metrics={"local": LocalMetric()},
    )
    return dict(run.validate())


def predict(folder: Path) -> dict[str, Any]:
    """Return the predictions for a set of odd size, on every rank."""
    run = runner(folder)
    loader = make_loader(data(51), batch_size=8)
    return {"predictions": run.predict(loader)}


def measure_text(folder: Path) -> dict[str, float]:
    """Return the metrics of a language model on a set of odd size, with samples of different lengths."""
    loader = make_loader(NextLetter(13), batch_size=4)
    run = Runner(
        knowing_model(),
        val_loader=loader,
        metrics=["perplexity"],
        hooks=[GenerationHook(max_new_tokens=6)],
        device="cpu",
        work_dir=folder,
    )
    return dict(run.validate())


def measure(folder: Path, names: tuple[str, ...] = ("right",)) -> dict[str, Any]:
    """Train with a function that measures the share of its rank, and stop by its result."""
    seen = []

    def test_fn(model: nn.Module, loader: Any) -> dict[str, float]:
        right = count = 0
        for inputs, targets in loader:
            right += int((model(inputs).argmax(1) == targets).sum())
            count += len(targets)
        seen.append(count)
        name = names[int(os.environ.get("RANK", 0)) % len(names)]
        return {name: right / count}

    hooks = [DistEvalHook(make_loader(data(51), batch_size=8), test_fn=test_fn, metric="auto")]
    hooks += [EarlyStoppingHook(monitor=names[0], mode="max", patience=1)]
    run = runner(folder, hooks=hooks, max_epochs=4)
    run.train()
    return {"metrics": dict(run.metrics), "epoch": run.epoch, "samples": seen[0]}


def statistics(folder: Path, hook: str | None = None) -> dict[str, Any]:
    """The running statistics of batch norm after training."""
    run = runner(folder, batch_norm=True, hooks=[{"type": hook}] if hook else [], max_epochs=1)
    run.train()
    return {
        "mean": run.model[1].running_mean.clone(),
        "var": run.model[1].running_var.clone(),
        "weights": weights(run),
    }


def refused(folder: Path, **options: Any) -> str:
    """Return the error of a run that cannot work."""
    try:
        runner(folder, **options).train()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


class Uneven:
    """A loader that is longer on the first process."""

    def __len__(self) -> int:
        return 5 if os.environ["RANK"] == "0" else 4

    def __iter__(self) -> Any:
        inputs, targets = data(8).tensors
        return iter([(inputs, targets)] * len(self))


def uneven(folder: Path) -> str:
    return refused(folder, train_loader=Uneven())


def save_by_the_clock(folder: Path) -> int:
    """Count the checkpoints that rank 1's clock has led to; rank 0's interval is never over."""
    every = 1e-9 if os.environ["RANK"] == "1" else "1000h"
    hook = {"type": "CheckpointHook", "interval": -1, "every": every, "save_best": False}
    run = runner(folder, max_epochs=3, hooks=[hook, {"type": "EvalHook", "interval": 1000}])
    saves: list[int] = []
    run.register_hook(
        {"type": "LambdaHook", "after_save_checkpoint": lambda runner: saves.append(runner.iter)}
    )
    run.train()
    return len(saves)
