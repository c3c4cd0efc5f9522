"""One step of a model: a batch becomes `{"loss", "predictions", "targets"}`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookline.batches import COUNTS, TARGET_KEYS, first_of, unpack
from hookline.diagnosis import describe_contents, describe_kind, describe_shapes
from hookline.errors import HooklineError, Suggestion, add_note
from hookline.signature import parameters

# Optional second parameters of a step that get the optimizer. A required one always gets it.
OPTIMIZER_NAMES = ("optimizer", "optimizers")
LIGHTNING_STEPS = {"train_step": "training_step", "val_step": "validation_step"}

Outputs = dict[str, Any]
StepFunction = Callable[[Any], Outputs]
LossFunction = Callable[[Any, Any], torch.Tensor]


def make_step(
    model: torch.nn.Module,
    method: str,
    loss_fn: LossFunction | None = None,
    optimizer: Any = None,
    train_module: torch.nn.Module | None = None,
) -> StepFunction:
    """Return the step function of a model: its own method, or else forward and `loss_fn`.

    Args:
        model: The model itself.
        method: `train_step`, `val_step` or `test_step`.
        loss_fn: Takes predictions and targets; None if the model computes its loss.
        optimizer: Passed to the model's own step if that requires a second argument, or has an
            optional one named `optimizer` or `optimizers`.
        train_module: The module that training calls instead of the model: its DDP wrapper.
    """
    own = getattr(model, method, None)
    if own is None and method == "test_step":
        own = getattr(model, "val_step", None)
    _refuse_step_of_lightning(model, method, own, loss_fn)
    if own is not None:
        return _own_step(own, train_module or own, method, type(model).__name__, optimizer)
    called = train_module or model
    if loss_fn is None:
        return _self_scoring_step(called, model.forward, is_training=method == "train_step")
    return _supervised_step(called, loss_fn)


def build_step(run: Any, method: str) -> StepFunction:
    """Return the step function of a run, as hooks wrap it.

    Args:
        run: The runner.
        method: `train_step`, `val_step` or `test_step`.
    """
    wrapper = run.parallel.wrapper if method == "train_step" else None
    step = make_step(run.model, method, run.loss_fn, run.optimizer, wrapper)
    wrapped: StepFunction = run.parallel.wrap_step(step, method)
    return wrapped


def takes_optimizer(model: torch.nn.Module) -> bool:
    """Return whether the model's `train_step` takes the optimizer, to step it itself."""
    own = getattr(model, "train_step", None)
    return own is not None and _takes_more(own)


def computes_loss(model: torch.nn.Module) -> bool:
    """Return whether a model computes its loss from `labels`, as those of Hugging Face do."""
    unwrap = getattr(model, "get_base_model", None)  # a model of peft
    inner = unwrap() if callable(unwrap) else model
    return any("labels" in parameters(each.forward).known for each in (model, inner))


def unused_steps(model: torch.nn.Module) -> dict[str, str]:
    """Return the steps of a model that only Lightning would call, and their names here."""
    unused = {}
    for own, name in LIGHTNING_STEPS.items():
        if hasattr(model, name) and not hasattr(model, own):
            unused[name] = own
    return unused


def _refuse_step_of_lightning(
    model: torch.nn.Module, method: str, own: Any, loss_fn: LossFunction | None
) -> None:
    """Raise HooklineError if a model has a step as Lightning calls it."""
    about: dict[str, Any] = {"component": type(model).__name__, "parameter": method}
    name = LIGHTNING_STEPS.get(method, "")
    if loss_fn is None and name in unused_steps(model):
        message = f"the model has a {name}, as for Lightning, and no {method}"
        advice = f"name it {method}(batch), and return a dict with 'loss'"
        raise HooklineError(message, suggestion=Suggestion(advice=advice), **about)
    if own is not None and "batch_idx" in list(parameters(own).known)[1:2]:
        message = f"the second argument of {method} is the optimizer, and not 'batch_idx'"
        advice = "leave it out; a hook has runner.batch_idx"
        raise HooklineError(message, suggestion=Suggestion(advice=advice), **about)


def _supervised_step(model: torch.nn.Module, loss_fn: LossFunction) -> StepFunction:
    def step(batch: Any) -> Outputs:
        if type(batch) in (list, tuple) and len(batch) == 2:
            inputs, targets = batch
        else:
            inputs, targets = unpack(batch)
        try:
            predictions = model(inputs)
        except Exception as error:
            add_note(error, f"hookline: the model got {describe_contents(inputs)}")
            raise
        try:
            loss = loss_fn(predictions, targets)
        except Exception as error:
            note = f"hookline: loss_fn got {describe_shapes(predictions, targets)}"
            if not isinstance(predictions, torch.Tensor):
                note += "; a model that returns more than predictions needs its own train_step"
            add_note(error, note)
            raise
        return {"loss": loss, "predictions": predictions, "targets": targets}

    return step


def _self_scoring_step(
    model: torch.nn.Module, forward: Callable[..., Any], is_training: bool
) -> StepFunction:
    """Return the step of a model that computes its loss, as those of Hugging Face do."""

    def step(batch: Any) -> Outputs:
        arguments, named = _as_call(batch)
        try:
            result = model(*arguments, **named)
        except Exception as error:
            if isinstance(error, TypeError):
                _check_call(forward, batch, error)
            add_note(error, f"hookline: the model got {describe_contents(batch)}")
            raise
        if isinstance(result, torch.Tensor) and result.ndim == 0:
            result = {"loss": result}
        loss = _part(result, "loss")
        if loss is None and is_training:
            raise HooklineError(
                "the model returned no 'loss' and there is no loss_fn: pass loss_fn=… or return "
                "{'loss': …}"
            )
        targets = first_of(batch, TARGET_KEYS) if isinstance(batch, Mapping) else None
        outputs = {"loss": loss, "predictions": predictions_of(result), "targets": targets}
        for key in COUNTS:
            count = _part(result, key)
            if count is not None:
                outputs[key] = count
        return outputs

    return step


def _own_step(
    own: Callable[..., Any], call: Callable[..., Any], method: str, model: str, optimizer: Any
) -> StepFunction:
    extra = [optimizer] if _takes_more(own) else []
    also = " and the optimizer" if extra else ""

    def step(batch: Any) -> Outputs:
        try:
            outputs = call(batch, *extra)
        except Exception as error:
            add_note(error, f"hookline: {model}.{method} got {describe_contents(batch)}{also}")
            raise
        if not isinstance(outputs, dict) or (method == "train_step" and "loss" not in outputs):
            got = describe_kind(outputs)
            raise HooklineError(f"{model}.{method} must return a dict with 'loss', got {got}")
        if "predictions" not in outputs or "targets" not in outputs:
            outputs = {"predictions": None, "targets": None, **outputs}
        return outputs

    return step


def _takes_more(own: Callable[..., Any]) -> bool:
    """Return whether a model's own step takes the optimizer as its second argument."""
    step = parameters(own)
    if len(step.required()) > 1:
        return True
    names = list(step.known)
    return len(names) > 1 and names[1] in OPTIMIZER_NAMES


def _as_call(batch: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(batch, Mapping):
        return (), batch
    if isinstance(batch, (list, tuple)):
        return tuple(batch), {}
    return (batch,), {}


def _part(result: Any, name: str) -> Any:
    return result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)


def predictions_of(result: Any) -> Any:
    """Return the predictions in the output of a model: its logits if it has several parts."""
    if isinstance(result, Mapping):
        return result.get("logits", result.get("predictions"))
    return getattr(result, "logits", result)


def _check_call(forward: Callable[..., Any], batch: Any, error: TypeError) -> None:
    """Raise HooklineError if a TypeError comes from the call itself, not from inside the model."""
    arguments, named = _as_call(batch)
    signature = inspect.signature(forward)
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        unknown = [name for name in named if name not in signature.parameters]
        if unknown and "labels" in signature.parameters:  # The model computes its loss.
            raise HooklineError(
                f"the forward of the model does not take {', '.join(unknown)} of the batch",
                parameter="train_loader",
                suggestion=Suggestion(advice="leave it out in the data set, or in its collate_fn"),
            ) from error
        raise HooklineError(
            "there is no loss_fn, so the model is called with the whole batch, "
            f"{describe_kind(batch)}, and must return its loss; its forward takes {signature}: "
            "pass loss_fn=…, or give the model a train_step(batch)"
        ) from error
