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

    def forward(self, inputs: Tensor) -> Any:
        """Return the output, or a list if there are several."""
        outputs = self.run(inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, inputs: Tensor, names: list[str] | None = None) -> list[Tensor]:
        """Return outputs by their names in the file; all of them by default."""
        (name,) = [each.name for each in self._session.get_inputs()]
        arrays = self._session.run(names, {name: inputs.detach().cpu().numpy()})
        return [torch.from_numpy(array) for array in arrays]


def verify_weights(path: Path, model: nn.Module, inputs: Tensor, tolerance: float) -> None:
    """Raise ExportError if a safetensors file has other weights than the model."""
    import safetensors.torch

    found = safetensors.torch.load_file(path)
    for name, value in model.state_dict().items():
        if name not in found or not torch.equal(found[name], value.cpu()):
            message = f"{name} differs in the file"
            raise ExportError(message, layer=name.rpartition(".")[0], file=path.name)


def verify_program(
    path: Path, model: nn.Module, inputs: Tensor, tolerance: float = TOLERANCE
) -> float:
    """Return the largest difference between a program and the model; raise if it is too large."""
    program = torch.export.load(path).module()
    return max(_compare(program, model, part, tolerance, path) for part in _sizes(inputs))


def verify_onnx(
    path: Path, model: nn.Module, inputs: Tensor, tolerance: float = TOLERANCE
) -> float:
    """Return the largest difference between an ONNX file and the model.

    Batches of two sizes are compared, because the size is dynamic.

    Raises:
        ExportError: If the difference is above the tolerance; `layer` is the first one that
            differs.
    """
    exported = OnnxModel(path)
    try:
        return max(_compare(exported, model, part, tolerance, path) for part in _sizes(inputs))
    except ExportError as error:
        layer = find_first_difference(path, model, inputs, tolerance)
        where = "no single layer differs" if layer is None else f"first at layer {layer!r}"
        message = f"{error.problems[0].message}; {where}"
        raise ExportError(message, layer=layer, file=path.name) from error


def find_first_difference(
    path: Path, model: nn.Module, inputs: Tensor, tolerance: float
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


def _layer_outputs(model: nn.Module, inputs: Tensor) -> dict[str, Tensor]:
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
        model(inputs)
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


def _sizes(inputs: Tensor) -> list[Tensor]:
    """Return batches of two sizes."""
    return [inputs, inputs[:1]]


def _compare(
    exported: Any, model: nn.Module, inputs: Tensor, tolerance: float, path: Path
) -> float:
    with torch.no_grad():
        expected = _tensors(model(inputs))
        found = _tensors(exported(inputs))
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


def _tensors(output: Any) -> list[Tensor]:
    """Return the tensors of an output, in order."""
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, Mapping):
        return [each for value in output.values() for each in _tensors(value)]
    if isinstance(output, (list, tuple)):
        return [each for value in output for each in _tensors(value)]
    raise ExportError(f"the model returned a {type(output).__name__}, which is not a tensor")
