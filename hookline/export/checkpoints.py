"""Export the weights of a checkpoint, with the metrics of a batch and a model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hookline.batches import unpack
from hookline.checkpoint.weights import load_weights
from hookline.export.card import write_card
from hookline.export.errors import ExportError
from hookline.export.formats import FORMATS, evaluating, export_model
from hookline.export.verification import OnnxModel
from hookline.metrics.base import Metric


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
        metrics: Metrics of the batch, which must be equal for the model and the ONNX file.
        directory: The directory for the files.
        formats: The formats to write.

    Raises:
        ExportError: If the model cannot be exported, or if a file computes something else.
    """
    load_weights(model, checkpoint.get("ema_state_dict") or checkpoint)
    is_pair = isinstance(batch, (list, tuple)) and len(batch) == 2
    inputs, targets = batch if is_pair else unpack(batch)
    if not isinstance(inputs, Tensor):
        raise ExportError("only a model that takes one tensor can be exported")
    files = export_model(model, inputs, directory, formats)
    if "onnx" in files:
        _compare_metrics(model, OnnxModel(files["onnx"]), metrics, inputs, targets)
    form = ", ".join(["N", *map(str, inputs.shape[1:])])
    described = f"{str(inputs.dtype).removeprefix('torch.')} [{form}]"
    return Exported(
        files, write_card(directory, files, checkpoint.get("meta", {}), described, name)
    )


def _compare_metrics(
    model: nn.Module,
    exported: OnnxModel,
    metrics: Mapping[str, Metric],
    inputs: Tensor,
    targets: Any,
) -> None:
    """Raise ExportError if a metric of the batch differs between the model and the ONNX file."""
    with evaluating(model):
        predictions = [each(inputs) for each in (model, exported)]
    for name, metric in metrics.items():
        values = []
        for each in predictions:
            metric.reset()
            metric.update(each, targets)
            values.append(torch.as_tensor(metric.compute()))
        if not torch.equal(*values):
            text = f"{name} is {values[1]} with the ONNX file and {values[0]} with the model"
            raise ExportError(text)
