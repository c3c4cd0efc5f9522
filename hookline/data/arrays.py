"""Data sets that lie in memory, whose batches are taken in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset


class ArrayDataset(Dataset[tuple[Tensor, Tensor]]):
    """Pairs of an input and a target out of two tensors.

    `scale` multiplies inputs on their way out (so that images can stay bytes in memory); `augment` is applied to single
    inputs and may draw random numbers.
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        *,
        scale: float | None = None,
        augment: Callable[[Tensor], Tensor] | None = None,
        num_classes: int | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        if len(inputs) != len(targets):
            raise ValueError(f"{len(inputs)} inputs but {len(targets)} targets: there must be one target for each input")
        self.inputs, self.targets, self.scale, self.augment = inputs, targets, scale, augment
        self.class_names = None if class_names is None else list(class_names)
        self.num_classes = len(class_names) if num_classes is None and class_names is not None else num_classes

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        inputs = self._scaled(self.inputs[index])
        return inputs if self.augment is None else self.augment(inputs), self.targets[index]

    @property
    def deterministic(self) -> bool:
        """Whether samples are taken as they are; a subclass with a `__getitem__` of its own may draw random numbers in it."""
        return self.augment is None and type(self).__getitem__ is ArrayDataset.__getitem__

    def take(self, indices: Tensor | list[int]) -> list[Tensor]:
        """A whole batch, the same as its samples one by one and then collated."""
        chosen = torch.as_tensor(indices, device=self.inputs.device)
        return [self._scaled(self.inputs.index_select(0, chosen)), self.targets.index_select(0, chosen)]

    def _scaled(self, inputs: Tensor) -> Tensor:
        return inputs if self.scale is None else inputs * self.scale
