"""Dry runs of a runner that was built in Python, with copies of its parts."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data import IterableDataset

from hookline.batches import named_loaders
from hookline.data.generators import capture_generators, restore_generators
from hookline.data.protocols import has_state, is_positioned
from hookline.dry_run.findings import DryRunResult
from hookline.dry_run.run import dry_run
from hookline.engine import BaseRunner
from hookline.errors import HooklineError
from hookline.preflight import READ_ONCE
from hookline.rng import restore_rng, rng_state

LOADERS = ("train_loader", "val_loader", "test_loader")


def dry_run_of_parts(runner: BaseRunner, parts: Mapping[str, Any], limit: float) -> DryRunResult:
    """Try a run on a few batches with copies of its model, optimizer, hooks and metrics.

    The loaders are not copied: their positions and generators are restored, and so are the global
    random numbers.

    Args:
        runner: The runner of the real run.
        parts: Its arguments by name.
        limit: The time limit in seconds.
    """
    loaders = _find_loaders(parts)
    for loader in loaders:
        if isinstance(loader, READ_ONCE):
            raise HooklineError(
                f"a dry run would use up batches of a {type(loader).__name__}, which can be read "
                "only once: pass an object whose __iter__ makes the batches"
            )

    def make(changes: Mapping[str, Any]) -> BaseRunner:
        copies = _copy(parts, shared=[runner, *loaders])  # A registered hook refers to its runner.
        return type(runner)(**{**copies, **changes})

    random_numbers = rng_state()
    try:
        with _unmoved(loaders):
            return dry_run(make, runner.work_dir, resume=parts["resume"], limit=limit)
    finally:
        restore_rng(random_numbers)


def _find_loaders(parts: Mapping[str, Any]) -> list[Any]:
    """Return all loaders of a run, also those of its hooks."""
    given = [parts[name] for name in LOADERS]
    given += [getattr(hook, "dataloader", None) for hook in parts["hooks"]]
    return [loader for each in given for loader in named_loaders(each).values()]


def _copy(parts: Mapping[str, Any], shared: list[Any]) -> dict[str, Any]:
    """Return copies that belong together: the optimizer is that of the copied model."""
    memo = {id(each): each for each in shared}
    try:
        return copy.deepcopy(dict(parts), memo)
    except Exception as error:
        raise HooklineError(
            f"a dry run works on copies of the model, the optimizer and the hooks, and one of them "
            f"cannot be copied ({type(error).__name__}: {error}); build it from a config and use "
            "`hookline dry-run`"
        ) from error


@contextlib.contextmanager
def _unmoved(loaders: list[Any]) -> Iterator[None]:
    """Restore the positions of loaders and streams, and the generators of loaders."""
    with contextlib.ExitStack() as stack:
        for loader in loaders:
            stack.callback(restore_generators, loader, capture_generators(loader))
            dataset = getattr(loader, "dataset", None)
            if not is_positioned(loader) and has_state(loader):
                stack.callback(loader.load_state_dict, copy.deepcopy(loader.state_dict()))
            elif isinstance(dataset, IterableDataset) and has_state(dataset):
                stack.callback(dataset.load_state_dict, copy.deepcopy(dataset.state_dict()))
        yield
