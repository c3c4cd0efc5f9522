"""Compare an exported file with its model, and find the layer where they first differ."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hookline.export.errors import ExportError

TOLERANCE = 1e-5
SCOPES = "pkg.torch.onnx.name_scopes"  # the modules of a node, in the metadata of ONNX files
MIN_LENGTH = 2  # torch.export takes a length of 1 for a constant

Inputs = Tensor | Mapping[str, Tensor]


def call(model: nn.Module, inputs: Inputs) -> Any:
    """Return the output of a model for a tensor, or for tensors by the names of its arguments."""
    return model(**inputs) if isinstance(inputs, Mapping) else model(inputs)


def shortened(model: nn.Module, inputs: Inputs) -> Inputs | None:
    """Return token sequences with half of their length; None if the model takes no other length."""
    if isinstance(inputs, Tensor):
        return None
    if any(value.ndim != 2 or value.is_floating_point() for value in inputs.values()):
        return None
    lengths = {value.shape[1] for value in inputs.values()}
    if len(lengths) > 1 or max(lengths) <= MIN_LENGTH:
        return None
    length = max(max(lengths) // 2, MIN_LENGTH)
    shorter = {name: value[:, :length] for name, value in inputs.items()}
    try:
        with torch.no_grad():
            call(model, shorter)
    except Exception:  # of any kind, from code of the user
        return None
    return shorter


def tensors_of(output: Any) -> list[Tensor]:
    """Return the tensors of an output, in order."""
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, Mapping):
        return [each for value in output.values() for each in tensors_of(value)]
    if isinstance(output, (list, tuple)):
        return [each for value in output for each in tensors_of(value)]
    raise ExportError(f"the model returned a {type(output).__name__}, which is not a tensor")


class OnnxModel(nn.Module):
    """An ONNX file that is called like the model, through onnxruntime on the CPU."""

    def __init__(self, path: Path | bytes, optimize: bool = True) -> None:
        import onnxruntime

        super().__init__()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if not optimize:
            level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
        source = path if isinstance(path, bytes) else str(path)
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(source, options, providers=providers)
        self._names = [each.name for each in self._session.get_inputs()]

    def forward(self, *inputs: Tensor, **named: Tensor) -> Any:
        """Return the output, or a list if there are several."""
        outputs = self.run(named or inputs[0])
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, inputs: Inputs, names: list[str] | None = None) -> list[Tensor]:
        """Return outputs by their names in the file; all of them by default."""
        named = {self._names[0]: inputs} if isinstance(inputs, Tensor) else inputs
        arrays = {name: named[name].detach().cpu().numpy() for name in self._names}
        return [torch.from_numpy(array) for array in self._session.run(names, arrays)]


def verify_weights(path: Path, model: nn.Module, inputs: Inputs, tolerance: float) -> None:
    """Raise ExportError if a safetensors file has other weights than the model."""
    import safetensors.torch

    found = safetensors.torch.load_file(path)
    for name, value in model.state_dict().items():
        if name not in found or not torch.equal(found[name], value.cpu()):
            message = f"{name} differs in the file"
            raise ExportError(message, layer=name.rpartition(".")[0], file=path.name)


def verify_program(
    path: Path, model: nn.Module, inputs: Inputs, tolerance: float = TOLERANCE
) -> float:
    """Return the largest difference between a program and the model; raise if it is too large."""
    program = torch.export.load(path).module()
    return max(_compare(program, model, part, tolerance, path) for part in _sizes(model, inputs))


def verify_onnx(
    path: Path, model: nn.Module, inputs: Inputs, tolerance: float = TOLERANCE
) -> float:
    """Return the largest difference between an ONNX file and the model.

    Batches of several sizes are compared, because the size is dynamic.

    Raises:
        ExportError: If the difference is above the tolerance; `layer` is the first one that
            differs.
    """
    exported = OnnxModel(path)
    try:
        return max(
            _compare(exported, model, part, tolerance, path) for part in _sizes(model, inputs)
        )
    except ExportError as error:
        layer = find_first_difference(path, model, inputs, tolerance)
        where = "no single layer differs" if layer is None else f"first at layer {layer!r}"
        message = f"{error.problems[0].message}; {where}"
        raise ExportError(message, layer=layer, file=path.name) from error


def find_first_difference(
    path: Path, model: nn.Module, inputs: Inputs, tolerance: float
) -> str | None:
    """Return the first layer, in the order of execution, whose output differs in an ONNX file."""
    import onnx

    expected = _layer_outputs(model, inputs)
    proto = onnx.load(path)
    values = {}
    for node in proto.graph.node:
        for layer in _layers_of(node):
            if layer in expected:
                values[layer] = node.output[0]  # of the last node of the layer
    known = {output.name for output in proto.graph.output}
    for name in dict.fromkeys(values.values()):
        if name not in known:
            proto.graph.output.append(onnx.ValueInfoProto(name=name))
    model_bytes = proto.SerializeToString()
    layers = [layer for layer in expected if layer in values]
    found = OnnxModel(model_bytes, optimize=False).run(inputs, [values[each] for each in layers])
    for layer, output in zip(layers, found, strict=True):
        is_same_kind = output.shape == expected[layer].shape
        if is_same_kind and _difference(output, expected[layer]) > tolerance:
            return layer
    return None


def _layer_outputs(model: nn.Module, inputs: Inputs) -> dict[str, Tensor]:
    """Return the outputs of the layers without children, in the order of their first call."""
    outputs: dict[str, Tensor] = {}
    handles = []
    for name, module in model.named_modules():
        if next(module.children(), None) is None:

            def keep(_: nn.Module, __: Any, output: Any, name: str = name) -> None:
                if isinstance(output, Tensor):
                    outputs.setdefault(name, output.detach().cpu().clone())

            handles.append(module.register_forward_hook(keep))
    try:
        call(model, inputs)
    finally:
        for handle in handles:
            handle.remove()
    return outputs


def _layers_of(node: Any) -> list[str]:
    """Return the modules that an ONNX node belongs to."""
    for each in node.metadata_props:
        if each.key == SCOPES:
            scopes = ast.literal_eval(each.value)
            return [scope for scope in scopes if isinstance(scope, str)]
    return []


def _sizes(model: nn.Module, inputs: Inputs) -> list[Inputs]:
    """Return batches of two sizes, and one of another length if the model takes it."""
    if isinstance(inputs, Tensor):
        return [inputs, inputs[:1]]
    sizes: list[Inputs] = [inputs, {name: value[:1] for name, value in inputs.items()}]
    shorter = shortened(model, inputs)
    return sizes if shorter is None else [*sizes, shorter]


def _compare(
    exported: nn.Module, model: nn.Module, inputs: Inputs, tolerance: float, path: Path
) -> float:
    with torch.no_grad():
        expected = tensors_of(call(model, inputs))
        try:
            found = tensors_of(call(exported, inputs))
        except Exception as error:  # of torch or onnxruntime
            raise ExportError(f"cannot be run: {error}", file=path.name) from error
    if [each.shape for each in found] != [each.shape for each in expected]:
        raise ExportError("its outputs have other shapes than those of the model", file=path.name)
    largest = 0.0
    for value, wanted in zip(found, expected, strict=True):
        largest = max(largest, _difference(value, wanted))
    if not largest <= tolerance:
        message = f"its outputs differ by {largest:.3g}, more than {tolerance:g}"
        raise ExportError(message, file=path.name)
    return largest


def _difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference of two outputs, relative to values above 1."""
    if not found.numel():
        return 0.0
    wanted = expected.detach().cpu().double()
    gap = (found.detach().cpu().double() - wanted).abs() / wanted.abs().clamp(min=1.0)
    return float(gap.max())
