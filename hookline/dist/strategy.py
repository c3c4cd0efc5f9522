"""Strategies for several ranks: a replicated model (DDP) or a sharded one (FSDP2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hookline.dist.world import World
from hookline.errors import ConfigError, Suggestion, suggest

Kind = Literal["single", "ddp", "fsdp"]
KINDS = ("auto", "single", "ddp", "fsdp")
DDP_OPTIONS = (
    "find_unused_parameters",
    "gradient_as_bucket_view",
    "static_graph",
    "bucket_cap_mb",
    "broadcast_buffers",
)
FSDP_OPTIONS = ("wrap", "mixed_precision", "reshard_after_forward", "cpu_offload")
DEFAULT_TIMEOUT_S = 90.0


@dataclass(frozen=True)
class Strategy:
    """A strategy, its options, and the watchdog's timeout in seconds."""

    kind: Kind = "single"
    options: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT_S


def choose_strategy(given: str | Mapping[str, Any], world: World) -> Strategy:
    """Return the strategy for `auto`, a name, or a mapping with the name as `type` and options."""
    about: dict[str, Any] = {"component": "strategy"}
    options: dict[str, Any] = {"type": given} if isinstance(given, str) else dict(given)
    kind = options.pop("type", "auto")
    timeout = options.pop("timeout", DEFAULT_TIMEOUT_S)
    if kind not in KINDS:
        message = f"must be one of {', '.join(KINDS)}"
        raise ConfigError(message, value=kind, suggestion=suggest(str(kind), KINDS), **about)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        about["parameter"] = "timeout"
        raise ConfigError("timeout must be a number of seconds above 0", value=timeout, **about)
    if kind == "single" and world.size > 1:
        advice = Suggestion(advice="leave it out, or start only one process")
        message = f"is 'single', but this is one of {world.size} processes"
        raise ConfigError(message, suggestion=advice, **about)
    known = FSDP_OPTIONS if kind == "fsdp" else DDP_OPTIONS
    for name in options:
        if name not in known:
            about |= {"parameter": name, "suggestion": suggest(name, (*known, "timeout"))}
            raise ConfigError(f"{kind} has no option {name!r}", **about)
    if world.size == 1:
        return Strategy("single", {}, float(timeout))  # the options are for several ranks
    return Strategy("ddp" if kind == "auto" else kind, options, float(timeout))


class MethodModule(nn.Module):
    """A module that calls a method of a model: DDP only tracks calls of a module."""

    def __init__(self, model: nn.Module, method: str) -> None:
        super().__init__()
        self.model = model
        self._method = method

    def forward(self, *args: Any) -> Any:
        return getattr(self.model, self._method)(*args)


def replicate(model: nn.Module, method: str | None, strategy: Strategy) -> DistributedDataParallel:
    """Return the model under DDP; its call is the model's `method`, or its forward."""
    devices = [torch.cuda.current_device()] if next(model.parameters()).is_cuda else None
    module = model if method is None else MethodModule(model, method)
    return DistributedDataParallel(module, device_ids=devices, **strategy.options)
