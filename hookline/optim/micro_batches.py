"""Run a step in parts of the batch, with the loss and the gradients of the whole batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from hookline.batches import COUNTS, count_samples
from hookline.optim.weighing import count_terms
from hookline.step import StepFunction

Outputs = dict[str, Any]


def run_in_parts(
    step: StepFunction, batch: Any, size: int, parameters: Sequence[torch.Tensor]
) -> Outputs:
    """Run a step on parts of a batch, each with its backward pass, which frees its memory.

    The loss in the result is that of the whole batch. Its backward pass adds the gradients.

    Args:
        step: The step of the model.
        batch: The batch.
        size: The largest number of samples in a part.
        parameters: The parameters that need gradients; none in an evaluation.
    """
    trained = [each for each in parameters if each.requires_grad]
    results: list[tuple[Outputs, float]] = []
    sums: list[torch.Tensor | None] = [None] * len(trained)
    for part in split(batch, size):
        outputs = step(part)
        count = count_terms(outputs, part)
        if trained:
            gradients = torch.autograd.grad(outputs["loss"], trained, allow_unused=True)
            sums = [_add(total, each, count) for total, each in zip(sums, gradients, strict=True)]
        results.append((_detach(outputs), count))
    merged = merge(results)
    if trained:
        total = sum(count for _, count in results)
        means = [None if each is None else each / total for each in sums]
        merged["loss"] = _KnownGradients.apply(merged["loss"], means, *trained)  # type: ignore[no-untyped-call]
    return merged


def split(batch: Any, size: int) -> Iterator[Any]:
    """Yield parts of a batch, in order. All tensors and lists with one item per sample are cut."""
    length = count_samples({}, batch)
    for start in range(0, length, size):
        yield _cut(batch, length, slice(start, min(start + size, length)), is_container=True)


def merge(results: Sequence[tuple[Outputs, float]]) -> Outputs:
    """Return the outputs of the whole batch from those of its parts, with their weights."""
    merged: Outputs = {}
    total = sum(count for _, count in results)
    for key in results[0][0]:
        values = [outputs[key] for outputs, _ in results]
        if key in COUNTS:
            merged[key] = sum(values)
        elif all(isinstance(each, torch.Tensor) and each.ndim > 0 for each in values):
            merged[key] = torch.cat(values)
        elif all(isinstance(each, (list, tuple)) for each in values):
            merged[key] = [item for each in values for item in each]
        elif all(isinstance(each, (float, torch.Tensor)) for each in values):
            weighted = zip(values, results, strict=True)
            merged[key] = sum(value * count for value, (_, count) in weighted) / total
        else:
            merged[key] = values[-1]
    return merged


class _KnownGradients(torch.autograd.Function):
    """A loss whose gradients are already computed."""

    @staticmethod
    def forward(ctx: Any, loss: torch.Tensor, gradients: Any, *parameters: Any) -> torch.Tensor:
        ctx.gradients = gradients
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, scale: torch.Tensor) -> Any:
        scaled = [None if each is None else each * scale for each in ctx.gradients]
        return None, None, *scaled


def _add(
    total: torch.Tensor | None, gradient: torch.Tensor | None, count: float
) -> torch.Tensor | None:
    if gradient is None:
        return total
    return gradient * count if total is None else total.add_(gradient, alpha=count)


def _detach(outputs: Mapping[str, Any]) -> Outputs:
    return {
        key: value.detach() if isinstance(value, torch.Tensor) else value
        for key, value in outputs.items()
    }


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
