"""Parts of a checkpoint: states of several objects, packed states of one rank, versions."""

from __future__ import annotations

import io
import platform
from collections.abc import Mapping
from typing import Any

import torch

from hookline.errors import HooklineError
from hookline.version import __version__


def collect_states(target: Any) -> Any:
    """Return the state of one object, or of a list or mapping of them."""
    if isinstance(target, Mapping):
        return {name: collect_states(value) for name, value in target.items()}
    if isinstance(target, (list, tuple)):
        return [collect_states(value) for value in target]
    return target.state_dict()


def load_states(target: Any, state: Any) -> None:
    """Load what `collect_states` returned into the same objects."""
    if isinstance(target, Mapping):
        if set(target) != set(state):
            names = f"{sorted(state)} in the checkpoint and {sorted(target)} here"
            raise HooklineError(f"the names of the optimizers differ: {names}")
        for name, value in target.items():
            load_states(value, state[name])
    elif isinstance(target, (list, tuple)):
        for value, part in zip(target, state, strict=True):
            load_states(value, part)
    else:
        target.load_state_dict(state)


def pack(state: Any) -> bytes:
    """Return a state as bytes, to send it to another rank."""
    stream = io.BytesIO()
    torch.save(state, stream)
    return stream.getvalue()


def as_tensor(packed: bytes) -> torch.Tensor:
    """Return a packed state as a tensor, which a checkpoint can hold."""
    return torch.frombuffer(bytearray(packed), dtype=torch.uint8)


def unpack(packed: torch.Tensor) -> Any:
    """Return the state in a tensor from `as_tensor`."""
    return torch.load(io.BytesIO(bytes(packed.numpy())), weights_only=True)


def versions() -> dict[str, str]:
    """Return the versions that a checkpoint names."""
    return {
        "hookline": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }
