"""Averages of a model's weights over training: one fused update over lists that are collected once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class WeightAverage:
    """The running average of a model's parameters, and of its floating point buffers if wanted.

    It starts as a copy of them. `update(weight)` moves it towards them by that share; `swap_in()` puts it into the model in
    their place, by exchanging memory rather than copying, and `swap_out()` puts them back.
    """

    def __init__(self, model: nn.Module, buffers: bool = False, device: str | torch.device | None = None) -> None:
        self.model = model
        self.live: list[Tensor] = list(model.parameters())
        if buffers:
            self.live += [buffer for buffer in model.buffers() if buffer.is_floating_point()]
        self.average = [tensor.detach().to(device=device, copy=True) for tensor in self.live]
        self._elsewhere = any(here.device != there.device for here, there in zip(self.live, self.average, strict=True))
        self._groups = _by_kind(self.live, self.average)
        self._raw: list[Tensor] | None = None

    @property
    def swapped(self) -> bool:
        """Whether the model holds the average just now."""
        return self._raw is not None

    def update(self, weight: float) -> None:
        """`average = (1 - weight) * average + weight * current`."""
        assert self._raw is None, "the model holds the average: there is nothing to learn from it"
        with torch.no_grad():  # not as a decorator, which costs more, and this is done in each iteration
            for live, average in self._groups:
                torch._foreach_lerp_(average, self._near(live, average) if self._elsewhere else live, weight)

    @torch.no_grad()
    def restart(self) -> None:
        """Begin again with a copy of the current weights."""
        torch._foreach_copy_(self.average, self._current())

    def swap_in(self) -> None:
        """Let the model compute with the average, until `swap_out`."""
        if self._raw is None:
            self._raw = [tensor.detach().clone() if _is_sharded(tensor) else tensor.data for tensor in self.live]
            _point_to(self.live, self.average)

    def swap_out(self) -> None:
        """Give the model its own weights back."""
        if self._raw is not None:
            raw, self._raw = self._raw, None
            _point_to(self.live, raw)

    def state_dict(self) -> dict[str, Tensor]:
        """A whole state of the model, with the average in the place of what is averaged."""
        place = {id(tensor): average for tensor, average in zip(self.live, self.average, strict=True)}
        return {key: place.get(id(value), value) for key, value in self._state().items()}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state_dict` gave; KeyError if something of it is missing."""
        names = {id(value): key for key, value in self._state().items()}
        for tensor, average in zip(self.live, self.average, strict=True):
            average.copy_(state[names[id(tensor)]])

    def _state(self) -> dict[str, Any]:
        """The model's state with the very tensors, so that weights with two names are found under both."""
        return dict(self.model.state_dict(keep_vars=True))

    def _current(self) -> list[Tensor]:
        return self.live if self._raw is None else self._raw

    def _near(self, live: list[Tensor], average: list[Tensor]) -> list[Tensor]:
        return [tensor.to(other.device) for tensor, other in zip(live, average, strict=True)]


def warmed_up(momentum: float, iteration: int, warm_up: int) -> float:
    """`min(momentum, (1 + iter) / (warm_up + iter))`: a young average forgets its beginning faster."""
    return min(momentum, (1 + iteration) / (warm_up + iteration)) if warm_up > 0 else momentum


def annealed(momentum: float, updates: int, gamma: float) -> float:
    """`min(momentum, updates / (gamma + updates))`: the momentum of MMEngine's MomentumAnnealingEMA."""
    return min(momentum, updates / (gamma + updates))


def average_buffers(model: nn.Module) -> None:
    """In a distributed run, make floating point buffers their mean over all processes, so that one's stand for all."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        for buffer in model.buffers():
            if buffer.is_floating_point():
                torch.distributed.all_reduce(buffer)
                buffer /= torch.distributed.get_world_size()


def _by_kind(live: list[Tensor], average: list[Tensor]) -> list[tuple[list[Tensor], list[Tensor]]]:
    """Pairs of lists of one device and type each, which is what the fused operations want."""
    groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
    for tensor, other in zip(live, average, strict=True):
        mine, theirs = groups.setdefault((tensor.device, tensor.dtype), ([], []))
        mine.append(tensor)
        theirs.append(other)
    return list(groups.values())


def _point_to(tensors: list[Tensor], contents: list[Tensor]) -> None:
    for tensor, content in zip(tensors, contents, strict=True):
        if _is_sharded(tensor):  # whoever shards it keeps the memory, too
            with torch.no_grad():
                tensor.copy_(content)
        else:
            tensor.data = content.to(tensor.device)


def _is_sharded(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")
