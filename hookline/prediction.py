"""Prediction: one pass over data that may have no targets, with all predictions as the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from hookline.batches import INPUT_KEYS, first_of, move_each, named_loaders
from hookline.dist.gather import gather_in_order, is_sharded
from hookline.engine.runner import BaseRunner
from hookline.errors import HooklineError, Suggestion, add_note
from hookline.step import make_step

OWN_STEP = Suggestion(advice="give the model a predict_step(batch) that returns predictions")


def predict_all(runner: BaseRunner, loaders: Any) -> Any:
    """Return the predictions for a loader, or by name for several."""
    with runner.evaluation.begin(runner):
        runner.call_hook("before_predict")
        runner.model.eval()
        if runner.evaluation.sync_buffers:
            runner.world.broadcast_buffers(runner.model.buffers())
        results = {}
        with torch.no_grad():
            for name, loader in named_loaders(loaders).items():
                results[name] = _predict(runner, loader)
        runner.call_hook("after_predict")
    return results if isinstance(loaders, Mapping) else results[""]


def _predict(runner: BaseRunner, loader: Iterable[Any]) -> Any:
    step = runner.parallel.wrap_step(_prediction_step(runner), "predict_step")
    kept = []
    for index, batch in enumerate(move_each(loader, runner.device)):
        runner.batch_idx = index
        runner.batch = batch
        runner.outputs = step(batch)
        kept.append(_samples(runner.outputs["predictions"]))
    if is_sharded(loader):
        return _stack(gather_in_order(kept, loader, runner.world))
    return _stack([sample for batch in kept for sample in batch])


def _prediction_step(runner: BaseRunner) -> Callable[[Any], dict[str, Any]]:
    """Return a function that predicts for a batch, see `Runner.predict`."""
    model = runner.model
    own = getattr(model, "predict_step", None)
    if own is not None:
        return lambda batch: {"predictions": own(batch)}
    has_step = hasattr(model, "test_step") or hasattr(model, "val_step")
    if has_step or runner.loss_fn is None:
        return _with_advice(make_step(model, "test_step"))
    return lambda batch: {"predictions": model(_inputs(batch))}


def _with_advice(step: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    def predict(batch: Any) -> dict[str, Any]:
        try:
            return step(batch)
        except Exception as error:  # For example, a test_step that needs targets.
            add_note(error, f"hookline: raised in a prediction; {OWN_STEP.advice}")
            raise

    return predict


def _inputs(batch: Any) -> Any:
    """Return the inputs of a batch with or without targets."""
    if isinstance(batch, torch.Tensor):
        return batch
    if isinstance(batch, Mapping):
        inputs = first_of(batch, INPUT_KEYS)
        if inputs is not None:
            return inputs
    elif isinstance(batch, (list, tuple)) and len(batch) in (1, 2):
        return batch[0]
    message = f"cannot find the inputs of a model in a {type(batch).__name__}"
    raise HooklineError(message, parameter="loader", suggestion=OWN_STEP)


def _samples(predictions: Any) -> list[Any]:
    """Return the predictions of a batch as a list with one item per sample, on the CPU."""
    if isinstance(predictions, torch.Tensor) and predictions.ndim > 0:
        return list(predictions.detach().cpu())
    if isinstance(predictions, Mapping):
        columns = [_samples(column) for column in predictions.values()]
        return [dict(zip(predictions, row, strict=True)) for row in zip(*columns, strict=True)]
    if isinstance(predictions, (list, tuple)):
        return list(predictions)
    message = f"predictions need an item for each sample, got a {type(predictions).__name__}"
    raise HooklineError(message, suggestion=OWN_STEP)


def _stack(samples: list[Any]) -> Any:
    """Return one tensor for samples that are tensors of the same shape, else the list."""
    shapes = {each.shape if isinstance(each, torch.Tensor) else None for each in samples}
    if len(shapes) == 1 and None not in shapes:
        return torch.stack(samples)
    return samples
