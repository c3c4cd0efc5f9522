"""FSDP2: each rank holds a part of every parameter and gathers the rest while it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor, Shard, distribute_tensor, empty

from hookline.errors import ConfigError, Suggestion, suggest

PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def shard(
    model: nn.Module, optimizer: Any, device: torch.device, options: Mapping[str, Any]
) -> DeviceMesh:
    """Shard a model over all ranks, block by block, and give its optimizers the parts."""
    optimizers = list(optimizer.values()) if isinstance(optimizer, Mapping) else [optimizer]
    if any(isinstance(each, torch.optim.LBFGS) for each in optimizers):
        message = "a sharded model cannot be trained with LBFGS, which keeps the whole parameters"
        advice = Suggestion(advice="use the strategy 'ddp'")
        raise ConfigError(message, component="strategy", parameter="type", suggestion=advice)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for tensor in (*model.parameters(), *model.buffers()):
        dist.broadcast(tensor.data, 0)  # ranks have initialized them differently
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    policies = {
        "mesh": mesh,
        "mp_policy": _precision(options.get("mixed_precision")),
        "offload_policy": CPUOffloadPolicy() if options.get("cpu_offload") else OffloadPolicy(),
        "reshard_after_forward": options.get("reshard_after_forward", True),
    }
    for block in find_blocks(model, options.get("wrap")):
        fully_shard(block, **policies)
    fully_shard(model, **policies)
    for method in ("train_step", "val_step", "test_step"):
        if hasattr(model, method):
            register_fsdp_forward_method(model, method)
    parts = dict(model.named_parameters())
    for each in optimizers:
        if each is None:
            continue
        for group in each.param_groups:
            group["params"] = [parts[names[id(parameter)]] for parameter in group["params"]]
    return mesh


def find_blocks(model: nn.Module, wrap: str | Sequence[str] | None) -> list[nn.Module]:
    """Return the modules that are gathered one at a time, inner ones first.

    Args:
        model: The model.
        wrap: Names of their classes; `auto` takes the elements of every list of modules.
    """
    found: list[nn.Module] = []
    if wrap is None or wrap == "auto":
        for module in model.modules():
            if isinstance(module, (nn.ModuleList, nn.Sequential)):
                found += [part for part in module if part is not model]
    else:
        wanted = [wrap] if isinstance(wrap, str) else list(wrap)
        kinds = {type(module).__name__ for module in model.modules()}
        for name in wanted:
            if name not in kinds:
                about = {
                    "component": "strategy",
                    "parameter": "wrap",
                    "suggestion": suggest(name, kinds),
                }
                raise ConfigError(f"the model has no module {name!r} to wrap", **about)
        for module in model.modules():
            if type(module).__name__ in wanted and module is not model:
                found.append(module)
    unique: dict[int, nn.Module] = {}
    for part in found:
        has_parameters = next(part.parameters(), None) is not None
        if has_parameters and not isinstance(part, nn.ModuleList):
            unique[id(part)] = part
    return list(unique.values())[::-1]


def new_save_group() -> Any:
    """Return a process group for background writes: their collectives must not mix with others."""
    return dist.new_group(backend="gloo")


def empty_part(mesh: DeviceMesh, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Return an empty tensor for this rank's part."""
    return empty(shape, dtype=dtype, device_mesh=mesh, placements=[Shard(0)])


def checkpoint_as_parts(
    checkpoint: dict[str, Any], model: nn.Module, mesh: DeviceMesh
) -> dict[str, Any]:
    """Replace whole tensors of a checkpoint by this rank's parts."""
    own = model.state_dict()
    result = dict(checkpoint)
    for key in ("state_dict", "ema_state_dict", "training_weights"):
        if key in checkpoint:
            weights = checkpoint[key]
            result[key] = {name: _part(weights[name], own.get(name), mesh) for name in weights}
    if "optimizer" in checkpoint:
        parameters = list(model.parameters())
        result["optimizer"] = _optimizer_as_parts(checkpoint["optimizer"], parameters, mesh)
    return result


def _part(value: Any, own: torch.Tensor | None, mesh: DeviceMesh) -> Any:
    is_whole = isinstance(value, torch.Tensor) and not isinstance(value, DTensor)
    if isinstance(own, DTensor) and is_whole and value.shape == own.shape:
        return distribute_tensor(value.to(own.device), mesh, [Shard(0)])
    return value


def _optimizer_as_parts(
    state: Mapping[str, Any], parameters: Sequence[torch.Tensor], mesh: DeviceMesh
) -> dict[str, Any]:
    """Shard the tensors of an optimizer's state that have the shape of a parameter."""
    if "param_groups" not in state:  # several optimizers by name
        return {name: _optimizer_as_parts(each, parameters, mesh) for name, each in state.items()}
    own = {tuple(parameter.shape): parameter for parameter in parameters}
    states: dict[Any, dict[str, Any]] = {}
    for index, values in state["state"].items():
        states[index] = {}
        for name, value in values.items():
            parameter = own.get(tuple(value.shape)) if isinstance(value, torch.Tensor) else None
            states[index][name] = _part(value, parameter, mesh)
    return {**state, "state": states}


def _precision(given: Any) -> MixedPrecisionPolicy:
    if given is None:
        return MixedPrecisionPolicy()
    if given not in PRECISIONS:
        raise ConfigError(
            f"mixed_precision must be one of {', '.join(PRECISIONS)}",
            component="strategy",
            parameter="mixed_precision",
            value=given,
            suggestion=suggest(str(given), PRECISIONS),
        )
    return MixedPrecisionPolicy(param_dtype=PRECISIONS[given], reduce_dtype=torch.float32)
