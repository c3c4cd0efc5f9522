"""Build the parts inside a model, data set or loss: tokenizers, configs, base models."""

from __future__ import annotations

import sys
from typing import Any

from torch import nn
from torch.utils.data import Dataset

from hookline.registry import Registry

# Further classes that a part may have, by module. A module that is not imported has no objects.
LIBRARY_KINDS = {
    "transformers.tokenization_utils_base": "PreTrainedTokenizerBase",
    "transformers.configuration_utils": "PretrainedConfig",
    "transformers.generation.configuration_utils": "GenerationConfig",
    "peft.config": "PeftConfig",
}


class PartRegistry(Registry[Any]):
    """The registry of parts. Its kinds grow with the imported libraries."""

    def __init__(self) -> None:
        super().__init__("part", (nn.Module, Dataset), factories=True)
        self.parts = self

    def kinds(self) -> tuple[type, ...]:
        """Return the classes that a part may have."""
        found = [
            getattr(sys.modules[module], name, None)
            for module, name in LIBRARY_KINDS.items()
            if module in sys.modules
        ]
        return (*super().kinds(), *(each for each in found if isinstance(each, type)))


PARTS = PartRegistry()
