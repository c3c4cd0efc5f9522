"""FSDP2: each process holds a part of every parameter, and gets the rest only while it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, Shard, distribute_tensor, empty

from hookline.errors import ConfigError, suggest

PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def shard(model: nn.Module, optimizer: Any, device: torch.device, options: Mapping[str, Any]) -> DeviceMesh:
    """Shard a model over all processes, block by block, and let an optimizer that was made for it go on with the parts."""
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for tensor in (*model.parameters(), *model.buffers()):
        dist.broadcast(tensor.data, 0)  # each process has drawn its own first weights
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    policies = {
        "mesh": mesh,
        "mp_policy": _precision(options.get("mixed_precision")),
        "offload_policy": CPUOffloadPolicy() if options.get("cpu_offload") else OffloadPolicy(),
        "reshard_after_forward": options.get("reshard_after_forward", True),
    }
    for block in blocks_of(model, options.get("wrap")):
        fully_shard(block, **policies)
    fully_shard(model, **policies)
    for method in ("train_step", "val_step", "test_step"):
        if hasattr(model, method):
            register_fsdp_forward_method(model, method)
    parts = dict(model.named_parameters())
    for each in optimizer.values() if isinstance(optimizer, Mapping) else [optimizer] if optimizer is not None else []:
        for group in each.param_groups:
            group["params"] = [parts[names[id(parameter)]] for parameter in group["params"]]
    return mesh


def blocks_of(model: nn.Module, wrap: str | Sequence[str] | None) -> list[nn.Module]:
    """The modules that are gathered one at a time, inner ones first: those of the named classes, or the elements of every list."""
    if wrap is None or wrap == "auto":
        containers = (nn.ModuleList, nn.Sequential)
        found = [part for module in model.modules() if isinstance(module, containers) for part in module if part is not model]
    else:
        wanted = [wrap] if isinstance(wrap, str) else list(wrap)
        kinds = {type(module).__name__ for module in model.modules()}
        for name in wanted:
            if name not in kinds:
                raise ConfigError(f"strategy: wrap names {name!r}, and the model has no such module{suggest(name, kinds)}")
        found = [module for module in model.modules() if type(module).__name__ in wanted and module is not model]
    unique = {id(part): part for part in found if not isinstance(part, nn.ModuleList) and any(True for _ in part.parameters())}
    return list(unique.values())[::-1]


def new_save_group() -> Any:
    """A group of its own for what is written beside the training, whose collectives must not mix with that one's."""
    return dist.new_group(backend="gloo")


def empty_part(mesh: DeviceMesh, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Room for this process's part of a tensor."""
    return empty(shape, dtype=dtype, device_mesh=mesh, placements=[Shard(0)])


def checkpoint_as_parts(checkpoint: dict[str, Any], model: nn.Module, mesh: DeviceMesh) -> dict[str, Any]:
    """A checkpoint with this process's parts of what it has whole: one of a run that did not shard its model."""
    own = model.state_dict()
    result = dict(checkpoint)
    for key in ("state_dict", "ema_state_dict"):
        if key in checkpoint:
            result[key] = {name: _part(value, own.get(name), mesh) for name, value in checkpoint[key].items()}
    if "optimizer" in checkpoint:
        result["optimizer"] = _optimizer_as_parts(checkpoint["optimizer"], list(model.parameters()), mesh)
    return result


def _part(value: Any, own: torch.Tensor | None, mesh: DeviceMesh) -> Any:
    if isinstance(own, DTensor) and isinstance(value, torch.Tensor) and not isinstance(value, DTensor) and value.shape == own.shape:
        return distribute_tensor(value.to(own.device), mesh, [Shard(0)])
    return value


def _optimizer_as_parts(state: Mapping[str, Any], parameters: Sequence[torch.Tensor], mesh: DeviceMesh) -> dict[str, Any]:
    """An optimizer's state; the tensors in it that have a parameter's shape are spread like that."""
    if "param_groups" not in state:  # several optimizers by name
        return {name: _optimizer_as_parts(each, parameters, mesh) for name, each in state.items()}
    own = {tuple(parameter.shape): parameter for parameter in parameters}
    states = {
        index: {
            name: _part(value, own.get(tuple(value.shape)) if isinstance(value, torch.Tensor) else None, mesh)
            for name, value in values.items()
        }
        for index, values in state["state"].items()
    }
    return {**state, "state": states}


def _precision(given: Any) -> MixedPrecisionPolicy:
    if given is None:
        return MixedPrecisionPolicy()
    if given not in PRECISIONS:
        raise ConfigError(
            f"strategy: mixed_precision must be one of {', '.join(PRECISIONS)}, got {given!r}{suggest(str(given), PRECISIONS)}"
        )
    return MixedPrecisionPolicy(param_dtype=PRECISIONS[given], reduce_dtype=torch.float32)
