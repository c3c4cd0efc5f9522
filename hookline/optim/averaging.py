"""Running averages of a model's weights, updated with fused operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class WeightAverage:
    """The running average of a model's parameters, which starts as a copy of them.

    The average of bfloat16 and float16 weights is kept in float32, in which small updates are not
    lost. `update(weight)` moves the average towards the parameters. `swap_in()` puts it into the
    model by exchanging memory instead of copying, and `swap_out()` restores the parameters.

    Args:
        model: The model.
        buffers: Whether floating point buffers are averaged too.
        device: The device of the average; that of each parameter if None.
    """

    def __init__(
        self, model: nn.Module, buffers: bool = False, device: str | torch.device | None = None
    ) -> None:
        self.model = model
        self.live: list[Tensor] = list(model.parameters())
        if buffers:
            self.live += [buffer for buffer in model.buffers() if buffer.is_floating_point()]
        self.average = [
            tensor.detach().to(device=device, dtype=_precise(tensor.dtype), copy=True)
            for tensor in self.live
        ]
        pairs = zip(self.live, self.average, strict=True)
        self._is_different = any(
            live.device != average.device or live.dtype != average.dtype for live, average in pairs
        )
        self._groups = _group_by_kind(self.live, self.average)
        self._raw: list[Tensor] | None = None

    @property
    def swapped(self) -> bool:
        """Whether the model holds the average."""
        return self._raw is not None

    def update(self, weight: float) -> None:
        """Set the average to `(1 - weight) * average + weight * current`."""
        assert self._raw is None, "the model holds the average"
        # Not as a decorator, which is slower: this runs in each iteration.
        with torch.no_grad():
            for live, average in self._groups:
                if self._is_different:
                    live = _move_like(average, live)
                torch._foreach_lerp_(average, live, weight)

    @torch.no_grad()
    def restart(self) -> None:
        """Set the average to a copy of the current weights."""
        current = self.live if self._raw is None else self._raw
        torch._foreach_copy_(self.average, current)

    def swap_in(self) -> None:
        """Make the model compute with the average until `swap_out`."""
        if self._raw is not None:
            return
        self._raw = []
        for tensor in self.live:
            raw = tensor.detach().clone() if _is_sharded(tensor) else tensor.data
            self._raw.append(raw)
        _point_to(self.live, self.average)

    def swap_out(self) -> None:
        """Restore the weights that `swap_in` replaced."""
        if self._raw is None:
            return
        raw = self._raw
        self._raw = None
        _point_to(self.live, raw)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the model's state with the averages in place of the averaged tensors."""
        averages: dict[int, Tensor] = {}
        for tensor, average in zip(self.live, self.average, strict=True):
            averages[id(tensor)] = average
        return {key: averages.get(id(value), value) for key, value in self._model_state().items()}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Load a result of `state_dict`. Raise KeyError if a tensor is missing."""
        names = {id(value): key for key, value in self._model_state().items()}
        for tensor, average in zip(self.live, self.average, strict=True):
            average.copy_(state[names[id(tensor)]])

    def _model_state(self) -> dict[str, Any]:
        """Return the model's state with the original tensors, so that tied weights are found."""
        return dict(self.model.state_dict(keep_vars=True))


def warmup_momentum(momentum: float, iteration: int, warm_up: int) -> float:
    """Return `min(momentum, (1 + iter) / (warm_up + iter))`, so that a new average adapts fast."""
    if warm_up <= 0:
        return momentum
    return min(momentum, (1 + iteration) / (warm_up + iteration))


def annealed_momentum(momentum: float, updates: int, gamma: float) -> float:
    """Return `min(momentum, updates / (gamma + updates))`, as MMEngine's MomentumAnnealingEMA."""
    return min(momentum, updates / (gamma + updates))


def average_buffers(model: nn.Module) -> None:
    """Average floating point buffers over all ranks of a distributed run."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return
    for buffer in model.buffers():
        if buffer.is_floating_point():
            torch.distributed.all_reduce(buffer)
            buffer /= torch.distributed.get_world_size()


def _group_by_kind(
    live: list[Tensor], average: list[Tensor]
) -> list[tuple[list[Tensor], list[Tensor]]]:
    """Return pairs of lists with one device and dtype each, which fused operations need."""
    groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
    for live_tensor, average_tensor in zip(live, average, strict=True):
        kind = (live_tensor.device, live_tensor.dtype)
        live_group, average_group = groups.setdefault(kind, ([], []))
        live_group.append(live_tensor)
        average_group.append(average_tensor)
    return list(groups.values())


def _move_like(targets: list[Tensor], tensors: list[Tensor]) -> list[Tensor]:
    pairs = zip(tensors, targets, strict=True)
    return [tensor.to(target.device, target.dtype) for tensor, target in pairs]


def _point_to(tensors: list[Tensor], contents: list[Tensor]) -> None:
    for tensor, content in zip(tensors, contents, strict=True):
        if _is_sharded(tensor):
            # FSDP keeps a reference to the memory of a shard: copy into it.
            with torch.no_grad():
                tensor.copy_(content)
        else:
            tensor.data = content.to(tensor.device, tensor.dtype)


def _precise(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def _is_sharded(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")
