"""Evaluate with a user's test function or the `evaluate` method of a dataset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookline.diagnosis import describe_shapes
from hookline.dist import World
from hookline.dist.gather import combine_results, gather_in_order, is_sharded
from hookline.errors import HooklineError, add_note
from hookline.metrics.mean_loss import as_numbers
from hookline.signature import parameters

TestFunction = Callable[[torch.nn.Module, Any], Any]


class DatasetEvaluator:
    """The `evaluate` method of a loader's dataset, and the predictions for it.

    False if the dataset has no such method.

    Args:
        loader: The loader. Its dataset need not have `evaluate`.
        logger: Passed to an `evaluate` that takes one.
    """

    def __init__(self, loader: Any, logger: logging.Logger) -> None:
        evaluate = getattr(getattr(loader, "dataset", None), "evaluate", None)
        self._loader = loader
        self._logger = logger
        self._evaluate = evaluate if callable(evaluate) else None
        self._kept: list[list[Any]] = []

    def __bool__(self) -> bool:
        return self._evaluate is not None

    def update(self, predictions: Any) -> None:
        """Keep the predictions of a batch."""
        if isinstance(predictions, torch.Tensor):
            predictions = predictions.detach().cpu()
        self._kept.append(list(predictions))

    def compute(self, ranks: World) -> dict[str, Any]:
        """Return the dataset's metrics for the predictions of all ranks."""
        return self.as_metrics(gather_in_order(self._kept, self._loader, ranks))

    def apply(self, test_fn: TestFunction, model: torch.nn.Module, world: World) -> dict[str, Any]:
        """Call a test function and return its metrics, or those of its predictions."""
        results = test_fn(model, self._loader)
        if isinstance(results, Mapping):
            return dict(combine_results(world, as_numbers(results), self._loader))
        if is_sharded(self._loader):
            results = gather_in_order([list(results)], self._loader, world)
        return self.as_metrics(results)

    def as_metrics(self, results: Any) -> dict[str, Any]:
        """Return metrics by name, computed by the dataset if `results` are predictions."""
        if not isinstance(results, Mapping) and self._evaluate is not None:
            options = {}
            if "logger" in parameters(self._evaluate).known:
                options["logger"] = self._logger
            results = self._evaluate(results, **options)
        if not isinstance(results, Mapping):
            raise HooklineError(
                f"an evaluation must return metrics by name, got {type(results).__name__}: return "
                "a dict from test_fn, or give the dataset an evaluate(predictions) that does"
            )
        return dict(results)


def full_name(loader: str, key: str, mode: str) -> str:
    """Return `accuracy`, or `clean/accuracy` for the loader `clean`."""
    return f"{loader}/{key.removeprefix(f'{mode}_')}" if loader else key


def explain_failure(
    error: Exception, metric: str, outputs: Mapping[str, Any], model: object, mode: str
) -> Exception:
    """Add a note about its input to the error of a metric; a missing input has its own error."""
    given = {name: outputs[name] for name in ("predictions", "targets")}
    missing = [repr(name) for name, value in given.items() if value is None]
    if not missing:
        add_note(error, f"hookline: the metric {metric!r} got {describe_shapes(**given)}")
        return error
    steps = [step for step in (f"{mode}_step", "val_step") if hasattr(model, step)]
    who = steps[0] if steps else "the model"
    advice = "return both from it" if steps else "give the model a val_step that returns both"
    return HooklineError(
        f"{who} returned no {' and no '.join(missing)} to measure {metric!r} with: {advice}, or "
        "set metrics to []"
    )
