"""Write a model as safetensors, as a `torch.export` program and as ONNX."""

from __future__ import annotations

import contextlib
import importlib
import logging
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hookline.checkpoint.files import FileSystem, make_directories
from hookline.errors import Suggestion, require_choice
from hookline.export.errors import ExportError
from hookline.export.verification import (
    TOLERANCE,
    Inputs,
    shortened,
    verify_onnx,
    verify_program,
    verify_weights,
)

FORMATS = ("safetensors", "pt2", "onnx")
INSTALL = Suggestion(advice="pip install 'hookline[onnx]'")


def export_model(
    model: nn.Module,
    inputs: Inputs,
    directory: Path,
    formats: Sequence[str] = FORMATS,
    tolerance: float = TOLERANCE,
) -> dict[str, Path]:
    """Write a model to `model.safetensors`, `model.pt2` and `model.onnx`, and verify each file.

    The size of the batch is dynamic in all of them, and the length of token sequences if the model
    takes any. A file replaces an earlier one only after it was verified.

    Args:
        model: The model. It is exported as in evaluation, and left unchanged.
        inputs: A batch of samples, with which the files are verified: a tensor, or several by the
            names of the model's arguments.
        directory: The directory for the files.
        formats: The formats to write, of `FORMATS`.
        tolerance: The largest difference of an output, absolute or relative.

    Returns:
        The files by format.

    Raises:
        ExportError: If the model cannot be exported, or if a file computes something else.
    """
    for each in formats:
        require_choice("export", "formats", each, FORMATS)
    make_directories(FileSystem(), directory)
    written = {}
    with evaluating(model):
        for each in formats:
            path = directory / f"model.{each}"
            with _partial(directory) as folder:
                WRITERS[each](model, _at_least_two(inputs), folder / path.name)
                VERIFIERS[each](folder / path.name, model, inputs, tolerance)
                _move(folder, path)
            written[each] = path
    return written


@contextlib.contextmanager
def _partial(directory: Path) -> Iterator[Path]:
    """Yield a directory for files that are not verified yet, and remove it with its rest."""
    folder = directory / ".partial"
    shutil.rmtree(folder, ignore_errors=True)  # left by a process that was killed
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(folder: Path, path: Path) -> None:
    """Move a file to its place, after the files with its weights: large ones have several."""
    for beside in sorted(folder.iterdir()):
        if beside.name != path.name:
            beside.replace(path.parent / beside.name)
    (folder / path.name).replace(path)


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch all modules of a model to evaluation, without gradients, for a while."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, is_training in modes:
            module.training = is_training


def _at_least_two(inputs: Inputs) -> Inputs:
    """Return a batch of several samples: torch.export takes a size of 1 for a constant."""
    if isinstance(inputs, Tensor):
        return _pair(inputs)
    return {name: _pair(value) for name, value in inputs.items()}


def _pair(value: Tensor) -> Tensor:
    return value if len(value) > 1 else torch.cat([value, value])


def _write_weights(model: nn.Module, inputs: Inputs, path: Path) -> None:
    import safetensors.torch

    weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    path.write_bytes(safetensors.torch.save(weights))


def _write_program(model: nn.Module, inputs: Inputs, path: Path) -> None:
    torch.export.save(_trace(model, inputs), path)


def _write_onnx(model: nn.Module, inputs: Inputs, path: Path) -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ExportError(f"{name} is not installed", suggestion=INSTALL) from error
    # It warns about every optional package that is not installed.
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    traced = _trace(model, inputs)
    try:
        with warnings.catch_warnings():
            # Torch copies its own deprecated class here.
            warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
            program = torch.onnx.export(traced, dynamo=True, verbose=False)
        assert program is not None
        program.save(path)
    except torch.onnx.OnnxExporterError as error:
        message = f"torch.onnx cannot export {type(model).__name__}: {error}"
        raise ExportError(message) from error
    finally:
        logger.setLevel(level)


def _trace(model: nn.Module, inputs: Inputs) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch")
    try:
        if isinstance(inputs, Tensor):
            return torch.export.export(model, (inputs,), dynamic_shapes=({0: batch},))
        dynamic = {0: batch}
        if shortened(model, inputs) is not None:
            dynamic[1] = torch.export.Dim.AUTO
        shapes = dict.fromkeys(inputs, dynamic)
        return torch.export.export(model, (), dict(inputs), dynamic_shapes=shapes)
    except Exception as error:
        name = type(model).__name__
        raise ExportError(f"torch.export cannot trace {name}: {error}") from error


Writer = Callable[[nn.Module, Inputs, Path], None]
Verifier = Callable[[Path, nn.Module, Inputs, float], Any]
WRITERS: dict[str, Writer] = {
    "safetensors": _write_weights,
    "pt2": _write_program,
    "onnx": _write_onnx,
}
VERIFIERS: dict[str, Verifier] = {
    "safetensors": verify_weights,
    "pt2": verify_program,
    "onnx": verify_onnx,
}
