"""What would make a training pointless or fail at its first batch, told before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch.utils.data import Dataset, IterableDataset

from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


def check_trainable(runner: BaseRunner) -> None:
    """HooklineError if a run has nothing to train on, no length, or nobody to change the weights."""
    if runner.train_loader is None:
        raise HooklineError("there is nothing to train on: pass train_loader=…")
    if runner.max_epochs is None and runner.max_iters is None:
        raise HooklineError("how long to train? pass max_epochs=… or max_iters=…")
    for name in ("train_loader", "val_loader"):
        check_batches(name, getattr(runner, name))
    _check_steps(runner)


def check_batches(name: str, loader: Any) -> None:
    """HooklineError if a data set was given where a loader is wanted; an iterable one may give batches of its own."""
    for each in loader.values() if isinstance(loader, Mapping) else [loader]:
        if isinstance(each, Dataset) and not isinstance(each, IterableDataset):
            raise HooklineError(
                f"{name} is a Dataset ({type(each).__name__}), which gives single samples: "
                f"make_loader(dataset, batch_size=…) or a DataLoader gives batches"
            )


def _check_steps(runner: BaseRunner) -> None:
    optimizer, own = runner.optimizer, hasattr(runner.model, "train_step")
    if runner.sites.optimize:
        if optimizer is None:
            raise HooklineError("there is no optimizer: pass optimizer=…")
    elif optimizer is None and not own:
        raise HooklineError("there is no optimizer: pass optimizer=…, or give the model a train_step(batch) that steps its own")
    elif isinstance(optimizer, Mapping) and not own:
        raise HooklineError(
            f"nobody steps the {len(optimizer)} optimizers: give the model a train_step(batch, optimizers) that does, or pass only one"
        )
    elif optimizer is not None and not isinstance(optimizer, Mapping):
        raise HooklineError("no hook owns 'optimize', so the weights would never change: register an OptimizerHook")
