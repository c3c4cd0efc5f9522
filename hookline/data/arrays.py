"""Datasets in memory, whose batches are read with one indexing operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset

from hookline.errors import ConfigError


class ArrayDataset(Dataset[tuple[Tensor, Tensor]]):
    """Pairs of an input and a target from two tensors.

    Args:
        inputs: The inputs, one per sample.
        targets: The targets, one per sample.
        scale: A factor of each input that is read, so that images can be bytes in memory.
        augment: A function of each input that is read; it may draw random numbers.
        num_classes: The number of classes; by default the number of `class_names`.
        class_names: The names of the classes.
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
            message = f"{len(inputs)} inputs need as many targets, but there are {len(targets)}"
            raise ConfigError(message, component=type(self).__name__, parameter="targets")
        if num_classes is None and class_names is not None:
            num_classes = len(class_names)
        self.inputs = inputs
        self.targets = targets
        self.scale = scale
        self.augment = augment
        self.num_classes = num_classes
        self.class_names = None if class_names is None else list(class_names)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        inputs = self._scale(self.inputs[index])
        if self.augment is not None:
            inputs = self.augment(inputs)
        return inputs, self.targets[index]

    @property
    def deterministic(self) -> bool:
        """Whether reading a sample draws no random numbers; unknown for an overridden method."""
        return self.augment is None and type(self).__getitem__ is ArrayDataset.__getitem__

    def take(self, indices: Tensor | list[int]) -> list[Tensor]:
        """Return a batch: the same as reading its samples one by one and collating them."""
        chosen = torch.as_tensor(indices, device=self.inputs.device)
        inputs = self._scale(self.inputs.index_select(0, chosen))
        return [inputs, self.targets.index_select(0, chosen)]

    def _scale(self, inputs: Tensor) -> Tensor:
        return inputs if self.scale is None else inputs * self.scale
