"""How a model is spread over processes: not at all, replicated (DDP), or sharded (FSDP2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hookline.dist.world import World
from hookline.errors import ConfigError, suggest

Kind = Literal["single", "ddp", "fsdp"]
KINDS = ("auto", "single", "ddp", "fsdp")
DDP_OPTIONS = ("find_unused_parameters", "gradient_as_bucket_view", "static_graph", "bucket_cap_mb", "broadcast_buffers")
FSDP_OPTIONS = ("wrap", "mixed_precision", "reshard_after_forward", "cpu_offload")
DEFAULT_TIMEOUT = 90.0


@dataclass(frozen=True)
class Strategy:
    """What was chosen: its kind, its options, and after how many seconds a process that keeps the others waiting is reported."""

    kind: Kind = "single"
    options: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = DEFAULT_TIMEOUT


def choose_strategy(given: str | Mapping[str, Any], world: World) -> Strategy:
    """The strategy from `auto`, a name, or a mapping with its name as `type` and options; ConfigError if it makes no sense."""
    options: dict[str, Any] = {"type": given} if isinstance(given, str) else dict(given)
    kind, timeout = options.pop("type", "auto"), options.pop("timeout", DEFAULT_TIMEOUT)
    if kind not in KINDS:
        raise ConfigError(f"strategy must be one of {', '.join(KINDS)}, got {kind!r}{suggest(str(kind), KINDS)}")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        raise ConfigError(f"strategy: timeout must be a number of seconds above 0, got {timeout!r}")
    if kind == "single" and world.size > 1:
        raise ConfigError(f"strategy is 'single', but this is one of {world.size} processes: leave it out, or start only one")
    known = FSDP_OPTIONS if kind == "fsdp" else DDP_OPTIONS
    for name in options:
        if name not in known:
            raise ConfigError(f"strategy: {kind} has no option {name!r}{suggest(name, (*known, 'timeout'))}")
    if world.size == 1:
        return Strategy("single", {}, float(timeout))  # the options wait for a day with more processes
    return Strategy("ddp" if kind == "auto" else kind, options, float(timeout))


class Method(nn.Module):
    """A model whose call is one of its methods: DDP follows calls only."""

    def __init__(self, model: nn.Module, method: str) -> None:
        super().__init__()
        self.model, self._method = model, method

    def forward(self, *args: Any) -> Any:
        return getattr(self.model, self._method)(*args)


def replicate(model: nn.Module, method: str | None, strategy: Strategy) -> DistributedDataParallel:
    """The model under DDP, which gives all processes the main one's weights and averages gradients; `method` is what is called."""
    devices = [torch.cuda.current_device()] if next(model.parameters()).is_cuda else None
    return DistributedDataParallel(model if method is None else Method(model, method), device_ids=devices, **strategy.options)
