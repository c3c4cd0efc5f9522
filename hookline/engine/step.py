"""One step of a model: from a batch to a dict with the loss."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from hookline.errors import HooklineError, add_note
from hookline.signature import parameters

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

Outputs = dict[str, Any]
Step = Callable[[Any], Outputs]

INPUT_KEYS = ("inputs", "input", "x", "images", "image", "pixel_values")
TARGET_KEYS = ("targets", "target", "y", "labels", "label")


def make_step(runner: BaseRunner, method: str) -> Step:
    """The step of a runner's model: its own method (`train_step`, …) if it has one, else forward and `loss_fn`."""
    own = getattr(runner.model, method, None)
    if own is None and method == "test_step":
        own = getattr(runner.model, "val_step", None)
    training = method == "train_step"
    model = runner.parallel.called if training else runner.model  # evaluation synchronises nothing on the way
    if own is not None:
        return _own_step(own, model if training and runner.parallel.replicated else own, runner, method)
    if runner.loss_fn is None:
        return _self_scoring(model, runner.model.forward, required=training)
    return _supervised(model, runner.loss_fn)


def _supervised(model: torch.nn.Module, loss_fn: Callable[[Any, Any], torch.Tensor]) -> Step:
    def step(batch: Any) -> Outputs:
        inputs, targets = batch if type(batch) in (list, tuple) and len(batch) == 2 else unpack(batch)
        try:
            predictions = model(inputs)
        except Exception as error:
            add_note(error, f"hookline: the model got {_contents(inputs)}")
            raise
        try:
            loss = loss_fn(predictions, targets)
        except Exception as error:
            hint = (
                ""
                if isinstance(predictions, torch.Tensor)
                else "; a model that returns more than predictions needs a train_step of its own"
            )
            add_note(error, f"hookline: loss_fn got {compared(predictions, targets)}{hint}")
            raise
        return {"loss": loss, "predictions": predictions, "targets": targets}

    return step


def _self_scoring(model: torch.nn.Module, forward: Callable[..., Any], required: bool) -> Step:
    """For models that compute their loss themselves, as those of Hugging Face do, when the batch holds the targets."""

    def step(batch: Any) -> Outputs:
        try:
            result = model(**batch) if isinstance(batch, Mapping) else model(*batch) if isinstance(batch, (list, tuple)) else model(batch)
        except Exception as error:
            if isinstance(error, TypeError):
                _check_takes(forward, batch, error)
            add_note(error, f"hookline: the model got {_contents(batch)}")
            raise
        if isinstance(result, torch.Tensor) and result.ndim == 0:
            result = {"loss": result}
        loss = result.get("loss") if isinstance(result, Mapping) else getattr(result, "loss", None)
        if loss is None and required:
            raise HooklineError("the model returned no 'loss' and there is no loss_fn: pass loss_fn=… or return {'loss': …}")
        predictions = result.get("logits", result.get("predictions")) if isinstance(result, Mapping) else getattr(result, "logits", result)
        targets = next((batch[key] for key in TARGET_KEYS if key in batch), None) if isinstance(batch, Mapping) else None
        return {"loss": loss, "predictions": predictions, "targets": targets}

    return step


def _check_takes(forward: Callable[..., Any], batch: Any, error: TypeError) -> None:
    """Whether a TypeError is about the call itself: then what it was called with, and why, is to be told."""
    given = batch if isinstance(batch, Mapping) else {}
    values = () if given else batch if isinstance(batch, (list, tuple)) else (batch,)
    signature = inspect.signature(forward)
    try:
        signature.bind(*values, **given)
    except TypeError:
        raise HooklineError(
            f"there is no loss_fn, so the model is called with the whole batch, {_brief(batch)}, and must return its loss; its forward "
            f"takes {signature}: pass loss_fn=…, or give the model a train_step(batch)"
        ) from error


def _own_step(own: Callable[..., Any], call: Callable[..., Any], runner: BaseRunner, method: str) -> Step:
    extra = [runner.optimizer] if len(parameters(own).required()) > 1 else []

    def step(batch: Any) -> Outputs:
        outputs = call(batch, *extra)
        if not isinstance(outputs, dict) or (method == "train_step" and "loss" not in outputs):
            raise HooklineError(f"{type(runner.model).__name__}.{method} must return a dict with 'loss', got {_brief(outputs)}")
        if "predictions" not in outputs or "targets" not in outputs:
            outputs = {"predictions": None, "targets": None, **outputs}
        return outputs

    return step


def unpack(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch."""
    if isinstance(batch, Mapping):
        inputs = next((batch[key] for key in INPUT_KEYS if key in batch), None)
        targets = next((batch[key] for key in TARGET_KEYS if key in batch), None)
        if inputs is not None and targets is not None:
            return inputs, targets
    raise HooklineError(
        f"cannot tell inputs from targets in a batch that is {_brief(batch)}: give (inputs, targets), a dict with "
        f"'inputs' and 'targets', or a model with a train_step of its own"
    )


def compared(predictions: Any, targets: Any) -> str:
    """What was to be compared, by its shape, for the message of an error."""
    given = {"predictions": predictions, "targets": targets}
    return " and ".join(f"{name} {'' if isinstance(value, torch.Tensor) else 'that are '}{_part(value)}" for name, value in given.items())


def wrong_loss(loss: Any) -> str | None:
    """What is wrong with a loss to go backward from, for the message of an error; None if nothing is."""
    if isinstance(loss, torch.Tensor) and loss.numel() == 1 and loss.requires_grad:
        return None
    tensor = isinstance(loss, torch.Tensor)
    what = f"a tensor {_part(loss)}{'' if loss.requires_grad else ' without grad'}" if tensor else _part(loss)
    return f"the loss is {what}, and must be a tensor with one element that requires grad"


def _contents(value: Any) -> str:
    """A value with the shapes of the tensors in it, for the message of an error."""
    if isinstance(value, Mapping):
        head, parts = "a dict", [f"{key!r} {_part(item)}" for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        head, parts = _brief(value), [_part(item) for item in value]
    else:
        return _part(value)
    return f"{head}: {', '.join(parts[:4])}{', …' if len(parts) > 4 else ''}" if parts else _brief(value)


def _part(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{list(value.shape)} ({str(value.dtype).removeprefix('torch.')})"
    return _brief(value)


def _brief(value: Any) -> str:
    """What kind of thing a value is, for the message of an error."""
    if isinstance(value, Mapping):
        return f"a dict with {', '.join(map(repr, list(value)[:8])) or 'nothing'}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def move(batch: Any, device: torch.device) -> Any:
    """A batch on a device, whatever containers it is made of."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: move(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(value, device) for value in batch)
    return batch
