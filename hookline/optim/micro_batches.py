"""Run a step in parts of the batch, with the loss and the gradients of the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hookline.batches import COUNTS, IGNORED, count_samples, stated_count
from hookline.errors import HooklineError
from hookline.optim.sync import average_over_ranks
from hookline.optim.weighing import GroupWeights, count_terms
from hookline.step import Outputs, StepFunction

Gradients = list[torch.Tensor | None]


def evaluate_in_parts(step: StepFunction, batch: Any, size: int, loss_fn: Any = None) -> Outputs:
    """Run a step on parts of a batch without gradients; return the outputs of the whole batch.

    Args:
        step: The step of the model.
        batch: The batch.
        size: The largest number of samples in a part.
        loss_fn: The loss function of the step, if it has one.
    """
    results = []
    for part in split(batch, size):
        outputs = step(part)
        results.append((outputs, count_part_terms(outputs, part, batch, loss_fn)))
    return merge(results)


def differentiate_in_parts(
    step: StepFunction,
    batch: Any,
    size: int,
    parameters: Sequence[torch.Tensor],
    scale_loss: Callable[[torch.Tensor], torch.Tensor],
    loss_fn: Any = None,
) -> tuple[Outputs, Gradients]:
    """Run a step on parts of a batch, each with its backward pass, which frees its memory.

    The gradients that the parameters have already are left alone, even if a part fails.

    Args:
        step: The step of the model.
        batch: The batch.
        size: The largest number of samples in a part.
        parameters: The parameters that need gradients.
        scale_loss: Returns the scaled loss, so that small gradients survive half precision.
        loss_fn: The loss function of the step, if it has one.

    Returns:
        The outputs of the whole batch, and the gradient of its scaled loss for each parameter.
    """
    kept = [each.grad for each in parameters]
    weights = GroupWeights()
    results: list[tuple[Outputs, float]] = []
    try:
        _set_gradients(parameters, [None] * len(parameters))
        for part in split(batch, size):
            outputs = step(part)
            count = count_part_terms(outputs, part, batch, loss_fn)
            loss = scale_loss(outputs["loss"])
            if part is batch:
                _run_backward(loss)
            elif count > 0:  # The loss of a part without terms is often NaN.
                _run_backward(loss * weights.add(count, count))
            results.append(({**outputs, "loss": outputs["loss"].detach()}, count))
        if weights.count:
            weights.normalize(parameters)
        gradients: Gradients = [each.grad for each in parameters]
    finally:
        _set_gradients(parameters, kept)
    return merge(results), gradients


def known_loss(
    loss: torch.Tensor,
    parameters: Sequence[torch.Tensor],
    gradients: Gradients,
    scale: torch.Tensor,
    is_averaged: bool,
) -> torch.Tensor:
    """Return a loss whose backward pass adds gradients that are computed already.

    Args:
        loss: The value of the loss.
        parameters: The parameters.
        gradients: Their gradients, of the loss times `scale`.
        scale: The scale.
        is_averaged: Whether the backward pass averages them over all ranks.
    """

    def add(incoming: torch.Tensor) -> None:
        added = gradients
        for gradient in added:
            if gradient is not None:
                gradient.mul_((incoming / scale).to(gradient.device))
        if is_averaged:
            added = average_over_ranks(added, parameters)
        for parameter, gradient in zip(parameters, added, strict=True):
            if parameter.grad is None:
                parameter.grad = gradient
            elif gradient is not None:
                parameter.grad += gradient

    used = [each for each, grad in zip(parameters, gradients, strict=True) if grad is not None]
    start = loss.detach().requires_grad_()
    known: torch.Tensor = _KnownGradients.apply(start, add, used)  # type: ignore[no-untyped-call]
    return known


def split(batch: Any, size: int) -> Iterator[Any]:
    """Yield parts of a batch, in order. All tensors and lists with one item per sample are cut."""
    length = count_samples({}, batch)
    if length <= size:
        yield batch
        return
    for start in range(0, length, size):
        yield _cut(batch, length, slice(start, min(start + size, length)), is_container=True)


def merge(results: Sequence[tuple[Outputs, float]]) -> Outputs:
    """Return the outputs of the whole batch from those of its parts, with their weights."""
    if len(results) == 1:
        return results[0][0]
    merged: Outputs = {}
    counts = [count for _, count in results]
    for key in results[0][0]:
        values = [outputs[key] for outputs, _ in results]
        if key in COUNTS:
            merged[key] = sum(values)
        elif all(isinstance(each, torch.Tensor) and each.ndim > 0 for each in values):
            merged[key] = torch.cat(values)
        elif all(isinstance(each, (list, tuple)) for each in values):
            merged[key] = [item for each in values for item in each]
        elif all(isinstance(each, (float, torch.Tensor)) for each in values):
            merged[key] = _weighted_mean(values, counts)
        else:
            merged[key] = values[-1]
    return merged


def count_part_terms(
    outputs: Mapping[str, Any], part: Any, batch: Any, loss_fn: Any = None
) -> float:
    """Return the number of terms in the mean loss of a part of a batch.

    It is the number that the outputs state; else that of the targets that torch's loss function
    does not ignore, by their weights; else that of the samples.

    Raises:
        HooklineError: If targets may be ignored by a loss that states no number of terms.
    """
    if part is batch or stated_count(outputs) is not None:
        return count_terms(outputs, part)
    targets: Any = outputs.get("targets")
    if not isinstance(targets, torch.Tensor) or targets.is_floating_point():
        return count_terms(outputs, part)
    if isinstance(loss_fn, (nn.CrossEntropyLoss, nn.NLLLoss)):
        counted = targets[targets != loss_fn.ignore_index]
        if loss_fn.weight is None:
            return float(counted.numel())
        return float(loss_fn.weight[counted].sum())
    if loss_fn is None and bool((targets == IGNORED).any()):
        raise HooklineError(
            f"the model ignores some targets ({IGNORED}), so the mean loss of a part cannot be "
            "weighted: return 'num_tokens' with the loss"
        )
    return count_terms(outputs, part)


class _KnownGradients(torch.autograd.Function):
    """A loss whose gradients are already computed."""

    @staticmethod
    def forward(ctx: Any, loss: torch.Tensor, add: Any, used: Any) -> torch.Tensor:
        ctx.add = add
        ctx.known_leaves = used
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, incoming: torch.Tensor) -> Any:
        ctx.add(incoming)
        return None, None, None


def _run_backward(loss: torch.Tensor) -> None:
    # The step may run under autocast, but a backward pass must not.
    with torch.autocast(loss.device.type, enabled=False):
        loss.backward()  # type: ignore[no-untyped-call]


def _set_gradients(parameters: Sequence[torch.Tensor], gradients: Gradients) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient


def _weighted_mean(values: Sequence[Any], counts: Sequence[float]) -> Any:
    """Return the mean of numbers; those without terms, often NaN, do not count."""
    counted = [value * count for value, count in zip(values, counts, strict=True) if count > 0]
    return sum(counted) / sum(counts) if counted else values[-1]


def _cut(value: Any, length: int, part: slice, is_container: bool = False) -> Any:
    if isinstance(value, torch.Tensor):
        return value[part] if value.ndim > 0 and len(value) == length else value
    if isinstance(value, Mapping):
        return {key: _cut(item, length, part) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if len(value) == length and not is_container:
            return value[part]
        cut = [_cut(item, length, part) for item in value]
        return cut if isinstance(value, list) else tuple(cut)
    return value
