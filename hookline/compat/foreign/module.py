"""A model under another class: what a framework expects a model to be, made of the parts of the run's own."""

from __future__ import annotations

from typing import Any

import torch

SHARED = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


def share_parts(facade: Any, source: torch.nn.Module) -> None:
    """Let a module have the same parameters, buffers and layers as another one, now and later, under the same names."""
    own = facade.__dict__  # past torch's __setattr__, which would make the model a layer of itself
    own["source"] = source
    for name in SHARED:
        own[name] = source.__dict__[name]


class Mode:
    """`training` of a facade: the mode of its source. A data descriptor, so that it comes before the instance's own value."""

    def __get__(self, facade: Any, owner: Any = None) -> Any:
        if facade is None:
            return self
        source = facade.__dict__.get("source")
        return True if source is None else source.training

    def __set__(self, facade: Any, mode: bool) -> None:
        source = facade.__dict__.get("source")
        if source is not None:
            source.training = mode
