"""The model as training calls it: itself, or spread over several processes, or compiled."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hookline.checkpoint import with_shards
from hookline.dist import World, choose_strategy, replicate
from hookline.errors import HooklineError


class Parallel:
    """What `strategy`, `sync_bn` and `compile` make of a model. Its weights keep their names in all cases."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any,
        world: World,
        strategy: str | Mapping[str, Any],
        sync_bn: bool,
        compile: bool | Mapping[str, Any],
    ) -> None:
        self.strategy = choose_strategy(strategy, world)
        self._world, self._several_optimizers = world, isinstance(optimizer, Mapping)
        self.mesh: Any = None  # the processes that share parameters, where they are sharded
        self.model = _with_sync_bn(model) if sync_bn and world.size > 1 else model
        if self.strategy.kind == "ddp" and not self._has_ddp():
            _give_all_the_first_ones(self.model, world)
        if compile:
            self.model.compile(**({} if compile is True else compile))  # in place: the names of the weights stay
        if self.strategy.kind == "fsdp":
            from hookline.dist.fsdp import new_save_group, shard  # a second of imports

            self.mesh = shard(self.model, optimizer, next(model.parameters()).device, self.strategy.options)
            self.save_group = new_save_group()
        self.called: nn.Module = self.model  # what a training step calls

    def begin_training(self, epoch_length: int | None, order_seed: int | None = None) -> None:
        """Get ready, on all processes; HooklineError if they could not train together."""
        told = [text.split() for text in self._world.gather_text(f"{epoch_length} {order_seed}")]
        for what, values in zip(("numbers of batches", "seeds of its order"), zip(*told, strict=True), strict=True):
            if len(set(values)) > 1:
                text = ", ".join(f"{value} on process {rank}" for rank, value in enumerate(values))
                raise HooklineError(f"train_loader has different {what} ({text}), and they must be the same on all processes")
        if self.strategy.kind != "ddp" or self._has_ddp():
            return
        own_step = hasattr(self.model, "train_step")
        if own_step and self._several_optimizers:
            raise HooklineError(
                "a model that steps several optimizers itself runs several backward passes a step, and DDP follows one: wrap its "
                "parts in torch.nn.parallel.DistributedDataParallel when it is made, or start one process"
            )
        self.called = replicate(self.model, "train_step" if own_step else None, self.strategy)

    def whole(self, checkpoint: dict[str, Any], directory: Path) -> dict[str, Any]:
        """A checkpoint as this run's model needs it: with its tensors, where they lie beside it, and each process's part of them."""
        if self.mesh is None:
            return with_shards(checkpoint, directory)
        from hookline.dist.fsdp import checkpoint_as_parts, empty_part

        return checkpoint_as_parts(with_shards(checkpoint, directory, partial(empty_part, self.mesh)), self.model, self.mesh)

    def _has_ddp(self) -> bool:
        """Whether the user has seen to it."""
        return any(isinstance(part, DistributedDataParallel) for part in self.model.modules())

    @property
    def replicated(self) -> bool:
        return isinstance(self.called, DistributedDataParallel)


def _give_all_the_first_ones(model: nn.Module, world: World) -> None:
    """The main process's weights and buffers for all: each has drawn its own. DDP does it too, but after hooks may have copied them."""
    tensors = [*model.named_parameters(), *model.named_buffers()]
    own = [f"{name} {tuple(tensor.shape)}" for name, tensor in tensors]
    for rank, text in enumerate(world.gather_text("\n".join(own))):
        other = text.split("\n")
        if other != own:
            ours, theirs = next(pair for pair in zip_longest(own, other, fillvalue="nothing") if pair[0] != pair[1])
            raise HooklineError(f"the model differs between processes: {ours} on process {world.rank}, {theirs} on process {rank}")
    world.broadcast_buffers(tensor.data for _, tensor in tensors)


def _with_sync_bn(model: nn.Module) -> nn.Module:
    if next(model.parameters()).device.type == "cpu":
        raise HooklineError("sync_bn: torch has no synchronised batch norm for the CPU; leave it out, or use SyncBuffersHook")
    converted: nn.Module = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    return converted
