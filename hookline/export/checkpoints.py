"""Export the weights of a checkpoint, with the metrics of a batch and a model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hookline.batches import TARGET_KEYS, first_of, unpack
from hookline.checkpoint.weights import load_weights
from hookline.export.card import write_card
from hookline.export.errors import ExportError
from hookline.export.formats import FORMATS, evaluating, export_model
from hookline.export.verification import TOLERANCE, Inputs, OnnxModel, call, shortened, tensors_of
from hookline.metrics.base import Metric
from hookline.step import computes_loss, predictions_of


class Exported(NamedTuple):
    """The exported files by format, and the model card."""

    files: dict[str, Path]
    card: Path


def export_checkpoint(
    model: nn.Module,
    checkpoint: Mapping[str, Any],
    name: str,
    batch: Any,
    metrics: Mapping[str, Metric],
    directory: Path,
    formats: Sequence[str] = FORMATS,
) -> Exported:
    """Export the weights of a checkpoint; the averaged ones if there are any.

    Args:
        model: The model on the CPU, which gets the weights.
        checkpoint: The checkpoint.
        name: Its name, for the model card.
        batch: A batch of validation data.
        metrics: Metrics of the batch, which must agree for the model and the ONNX file.
        directory: The directory for the files.
        formats: The formats to write.

    Raises:
        ExportError: If the model cannot be exported, or if a file computes something else.
    """
    weights = checkpoint.get("ema_state_dict") or checkpoint["state_dict"]
    load_weights(model, {**checkpoint, "state_dict": weights})
    inputs, targets = _split(model, batch)
    files = export_model(model, inputs, directory, formats)
    if "onnx" in files:
        _compare_metrics(model, OnnxModel(files["onnx"]), metrics, inputs, targets)
    card = write_card(directory, files, checkpoint.get("meta", {}), _forms(model, inputs), name)
    return Exported(files, card)


def _split(model: nn.Module, batch: Any) -> tuple[Inputs, Any]:
    """Return the inputs and the targets of a batch."""
    if isinstance(batch, Mapping) and computes_loss(model):
        named = {name: value for name, value in batch.items() if name not in TARGET_KEYS}
        if named and all(isinstance(value, Tensor) for value in named.values()):
            return named, first_of(batch, TARGET_KEYS)
    is_pair = isinstance(batch, (list, tuple)) and len(batch) == 2
    inputs, targets = batch if is_pair else unpack(batch)
    if not isinstance(inputs, Tensor):
        message = "only a model that takes one tensor, or tensors by name, can be exported"
        raise ExportError(message)
    return inputs, targets


def _forms(model: nn.Module, inputs: Inputs) -> dict[str, str]:
    """Describe the inputs by name; the name of a single one is empty."""
    with evaluating(model):
        is_free = shortened(model, inputs) is not None
    named = {"": inputs} if isinstance(inputs, Tensor) else inputs
    forms = {}
    for name, value in named.items():
        sizes = ["N", *map(str, value.shape[1:])]
        if is_free:
            sizes[1] = "length"
        forms[name] = f"{str(value.dtype).removeprefix('torch.')} [{', '.join(sizes)}]"
    return forms


def _compare_metrics(
    model: nn.Module,
    exported: OnnxModel,
    metrics: Mapping[str, Metric],
    inputs: Inputs,
    targets: Any,
) -> None:
    """Raise ExportError if a metric of the batch differs between the model and the ONNX file."""
    with evaluating(model):
        output = call(model, inputs)
    expected = predictions_of(output)
    found = call(exported, inputs)
    if isinstance(expected, Tensor):
        position = [value is expected for value in tensors_of(output)].index(True)
        found = exported.run(inputs)[position]
    for name, metric in metrics.items():
        wanted, value = (_measure(metric, each, targets) for each in (expected, found))
        # A sample that counts differently changes a metric by more.
        if not torch.allclose(value, wanted, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            raise ExportError(f"{name} is {value} with the ONNX file and {wanted} with the model")


def _measure(metric: Metric, predictions: Any, targets: Any) -> Tensor:
    metric.reset()
    metric.update(predictions, targets)
    return torch.as_tensor(metric.compute(), dtype=torch.float64)
