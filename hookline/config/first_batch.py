"""Check the first batch of a configured loss, because torch's own errors are hard to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from hookline.config.locations import Config
from hookline.errors import ConfigError, KeyPath, Problem, Suggestion

# Losses whose targets are class numbers.
CLASSIFICATION_LOSSES = (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)

# Losses that compare predictions and targets element by element.
ELEMENTWISE_LOSSES = (
    nn.MSELoss,
    nn.L1Loss,
    nn.SmoothL1Loss,
    nn.HuberLoss,
    nn.BCELoss,
    nn.BCEWithLogitsLoss,
)

Check = Callable[[Config, nn.Module, Tensor, Tensor], Problem | None]


def check_first_batch(config: Config, loss_fn: Any, *, is_default: bool) -> None:
    """Make a loss check its first batch; later batches are not checked.

    Args:
        config: The config, for the locations of problems.
        loss_fn: The loss. Only torch's own losses are checked.
        is_default: Whether the config leaves the loss to the default.
    """
    checks: list[Check] = []
    if is_default and isinstance(loss_fn, nn.Module):
        checks.append(check_target_dtype)
    if type(loss_fn) in ELEMENTWISE_LOSSES:
        checks.append(check_shapes)
    elif type(loss_fn) in CLASSIFICATION_LOSSES:
        checks.append(check_target_range)
    if not checks:
        return

    def check(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        handle.remove()
        tensors = [each for each in arguments[:2] if isinstance(each, Tensor)]
        if len(tensors) < 2:
            return
        for find_problem in checks:
            problem = find_problem(config, module, *tensors)
            if problem is not None:
                raise ConfigError(config.locate(problem))

    handle = loss_fn.register_forward_pre_hook(check)


def check_target_dtype(
    config: Config, loss: nn.Module, predictions: Tensor, targets: Tensor
) -> Problem | None:
    """Reject float targets for the default loss, which expects class numbers."""
    if not targets.is_floating_point():
        return None
    kind = type(loss).__name__
    return Problem(
        f"the default loss {kind} expects class numbers, but the targets are floats of shape "
        f"{list(targets.shape)}",
        ("training",),
        component=kind,
        parameter="loss",
        suggestion=Suggestion(advice="set training.loss, for example to MSELoss"),
    )


def check_target_range(
    config: Config, loss: nn.Module, predictions: Tensor, targets: Tensor
) -> Problem | None:
    """Reject class numbers that the model has no output for; torch's error names neither number."""
    if targets.is_floating_point() or predictions.ndim != targets.ndim + 1:
        return None
    classes = predictions.shape[1 if targets.ndim else 0]
    counted = targets[targets != getattr(loss, "ignore_index", -100)]
    if not counted.numel() or int(counted.max()) < classes:
        return None
    path: KeyPath = ("model",)
    if config.at(("model", "num_classes")) is not None:
        path = ("model", "num_classes")
    return Problem(
        f"outputs {classes} classes, so targets must be 0 to {classes - 1}",
        path,
        component="model",
        parameter="num_classes",
        value=int(counted.max()),
    )


def check_shapes(
    config: Config, loss: nn.Module, predictions: Tensor, targets: Tensor
) -> Problem | None:
    """Reject shapes that an elementwise loss cannot compare, or would broadcast by accident."""
    are_classes = not targets.is_floating_point() and predictions.ndim == targets.ndim + 1
    if not are_classes and _broadcasts_to(targets, predictions):
        return None
    advice = "give both the same shape"
    if are_classes:
        advice = "use CrossEntropyLoss for class numbers"
    return Problem(
        f"cannot compare predictions {list(predictions.shape)} with targets "
        f"{list(targets.shape)} element by element",
        ("training", "loss"),
        component=type(loss).__name__,
        suggestion=Suggestion(advice=advice),
    )


def _broadcasts_to(targets: Tensor, predictions: Tensor) -> bool:
    """Return whether targets broadcast to the shape of the predictions without new dimensions."""
    if targets.ndim > predictions.ndim:
        return False
    sizes = zip(targets.shape[::-1], predictions.shape[::-1], strict=False)
    return all(size in (1, wanted) for size, wanted in sizes)
