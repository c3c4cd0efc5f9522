"""The model as training calls it: itself, replicated, sharded or compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hookline.dist.modules import select_modules
from hookline.dist.strategy import choose_strategy, replicate
from hookline.dist.world import World
from hookline.errors import HooklineError


class Parallel:
    """Applies `strategy`, `sync_bn` and `compile` to a model. Its weights keep their names.

    Attributes:
        model: The model itself.
        train_module: The module that a training step calls: the model, or its DDP wrapper.
        mesh: The ranks that share parameters, if the model is sharded.
    """

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
        self.mesh: Any = None
        self.save_group: Any = None  # for background writes of a sharded model
        self.model = _convert_sync_bn(model) if sync_bn and world.size > 1 else model
        self._world = world
        # By hook, functions that wrap the step function of a method such as `val_step`.
        self.step_wrappers: dict[str, Callable[[Any, str], Any]] = {}
        self.steps_itself = False  # whether the model's train_step runs backward and steps
        self.has_local_backward = False  # whether a hook averages the gradients in place of DDP
        if self.strategy.kind == "ddp" and not self.has_own_ddp():
            _broadcast_initial_weights(self.model, world)
        if compile:
            _compile(self.model, {} if compile is True else dict(compile))
        if self.strategy.kind == "fsdp":
            from hookline.dist.fsdp import new_save_group, shard  # a second of imports

            device = next(model.parameters()).device
            self.mesh = shard(self.model, optimizer, device, self.strategy.options)
            self.save_group = new_save_group()
        self.train_module: nn.Module = self.model

    @property
    def wrapper(self) -> nn.Module | None:
        """The module that training calls in place of the model, if there is one."""
        return None if self.train_module is self.model else self.train_module

    @property
    def averages_at_step(self) -> bool:
        """Whether gradients must be averaged before a step: DDP supports one backward pass."""
        return self.strategy.kind == "ddp" and self.steps_itself and not self.has_own_ddp()

    @property
    def is_replicated(self) -> bool:
        """Whether training calls a DDP wrapper."""
        return isinstance(self.train_module, DistributedDataParallel)

    def begin_training(self, epoch_length: int | None, order_seed: int | None = None) -> None:
        """Wrap the model on all ranks; raise HooklineError if they could not train together."""
        answers = self._world.gather_text(f"{epoch_length} {order_seed}")
        lengths, seeds = zip(*(answer.split() for answer in answers), strict=True)
        _check_same("number of batches", lengths)
        _check_same("shuffling seed", seeds)
        if self.strategy.kind != "ddp" or self.has_own_ddp():
            return
        if self.steps_itself or self.has_local_backward:
            return
        method = "train_step" if hasattr(self.model, "train_step") else None
        self.train_module = replicate(self.model, method, self.strategy)

    def wrap_step(self, step: Any, method: str) -> Any:
        """Return a step function as hooks wrap it."""
        for wrap in self.step_wrappers.values():
            step = wrap(step, method)
        return step

    def make_empty(self) -> Callable[..., Any] | None:
        """Return the function that makes an empty part of a sharded tensor; None without shards."""
        if self.mesh is None:
            return None
        from hookline.dist.fsdp import empty_part

        return partial(empty_part, self.mesh)

    def split_checkpoint(self, checkpoint: dict[str, Any]) -> dict[str, Any]:
        """Return a checkpoint with this rank's parts of the tensors, if the model is sharded."""
        if self.mesh is None:
            return checkpoint
        from hookline.dist.fsdp import checkpoint_as_parts

        return checkpoint_as_parts(checkpoint, self.model, self.mesh)

    def has_own_ddp(self) -> bool:
        """Return whether the user has wrapped the model or a part of it."""
        return any(isinstance(part, DistributedDataParallel) for part in self.model.modules())


def _compile(model: nn.Module, options: dict[str, Any]) -> None:
    """Compile the model, or only the modules that fit the patterns in `regions`."""
    regions = options.pop("regions", None)
    modules = [model]
    if regions is not None:
        modules = list(select_modules(regions, model, "regions", "compile").values())
    for module in modules:
        module.compile(**options)  # In place: a wrapper would change the names of the weights.


def _check_same(what: str, values: tuple[str, ...]) -> None:
    if len(set(values)) > 1:
        listed = ", ".join(f"{value} on rank {rank}" for rank, value in enumerate(values))
        raise HooklineError(
            f"train_loader must have the same {what} on all ranks, but has {listed}"
        )


def _broadcast_initial_weights(model: nn.Module, world: World) -> None:
    """Broadcast rank 0's weights and buffers.

    DDP does so too, but only after hooks such as EMA may have copied them.
    """
    tensors = [*model.named_parameters(), *model.named_buffers()]
    own = [f"{name} {tuple(tensor.shape)}" for name, tensor in tensors]
    for rank, text in enumerate(world.gather_text("\n".join(own))):
        other = text.split("\n")
        for ours, theirs in zip_longest(own, other, fillvalue="nothing"):
            if ours != theirs:
                raise HooklineError(
                    f"the model differs between ranks: {ours} on rank {world.rank}, {theirs} on "
                    f"rank {rank}"
                )
    world.broadcast_buffers(tensor.data for _, tensor in tensors)


def _convert_sync_bn(model: nn.Module) -> nn.Module:
    if next(model.parameters()).device.type == "cpu":
        raise HooklineError(
            "sync_bn: torch has no synchronized batch norm for the CPU; leave it out, or use "
            "SyncBuffersHook",
            parameter="sync_bn",
        )
    convert: Callable[[nn.Module], nn.Module] = torch.nn.SyncBatchNorm.convert_sync_batchnorm
    return convert(model)
