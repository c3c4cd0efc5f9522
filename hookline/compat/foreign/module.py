"""Give the run's model the class that a framework expects of a model."""

from __future__ import annotations

from typing import Any

import torch

SHARED = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


def share_parts(facade: Any, source: torch.nn.Module) -> None:
    """Let a module use the parameters, buffers and layers of another one, under the same names.

    They share the dicts, so that later changes show in both.
    """
    # Bypass torch's __setattr__, which would register the model as a layer of itself.
    attributes = facade.__dict__
    attributes["source"] = source
    for name in SHARED:
        attributes[name] = source.__dict__[name]


class SharedMode:
    """`training` of a facade: the mode of its source.

    A data descriptor, so that it takes precedence over the value in the instance's dict.
    """

    def __get__(self, facade: Any, owner: Any = None) -> Any:
        if facade is None:
            return self
        source = facade.__dict__.get("source")
        return True if source is None else source.training

    def __set__(self, facade: Any, mode: bool) -> None:
        source = facade.__dict__.get("source")
        if source is not None:
            source.training = mode
