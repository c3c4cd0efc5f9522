"""Checkpoints of the trained part of a model, with a hash in place of the frozen weights.

The trained part is every parameter that required a gradient at some time, the buffers of modules
that have such a parameter or update running statistics, and frozen weights that changed all the
same. Everything else is the base.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.structure import restoring
from hookline.errors import Suggestion

BASE = "base"  # the key of a checkpoint that describes the base
TAG = "trained part"  # marks such a checkpoint in the manifest
PARTS = ("state_dict", "ema_state_dict")
DIGEST_BYTES = 8  # of each frozen tensor, to name the first one that differs
SAME_BASE = Suggestion(advice="build the model from the same pretrained weights, or use load_from")
WORD_BYTES = 8

_Stamp = tuple[int, int | None, int]


class FrozenBase:
    """The frozen weights of a run's model, known by their hashes.

    A tensor is hashed once, and again only if its stamp shows that something wrote to it.

    Attributes:
        trained: The names of the weights that belong to the trained part.
    """

    def __init__(self) -> None:
        self.trained: set[str] = set()
        self._hashes: dict[str, tuple[_Stamp, bytes]] = {}
        self._thread: threading.Thread | None = None

    def start_hashing(self, model: nn.Module) -> None:
        """Hash the base in a thread, so that the first save need not do it."""
        self._finish()
        frozen = self._frozen(_state_of(model))
        self._thread = threading.Thread(
            target=self._hash, args=(frozen,), name="hookline-base-hash", daemon=True
        )
        self._thread.start()

    def reduce(self, model: nn.Module, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
        """Return a checkpoint of the trained part, with a description of the base."""
        self._finish()
        state = _state_of(model)
        frozen = self._frozen(state)
        first = {name: self._hashes[name][1] for name in frozen if name in self._hashes}
        self._hash(frozen)
        for name, digest in first.items():
            if self._hashes[name][1] != digest:
                self.trained.add(name)
                del frozen[name]
        return self._without(frozen, checkpoint, self._describe(frozen))

    def check(self, model: nn.Module, checkpoint: Mapping[str, Any]) -> None:
        """Raise CheckpointError if a checkpoint of the trained part belongs to another base."""
        self._finish()
        weights = checkpoint["state_dict"]
        frozen = {}
        for name, value in _state_of(model).items():
            if name not in weights and isinstance(value, Tensor):
                frozen[name] = value.detach()
        self._hash(frozen)
        found = self._describe(frozen)
        with restoring(BASE):
            reason = _difference(list(frozen), found, checkpoint[BASE])
        if reason is not None:
            message = f"has only the trained part of a model, and the base model differs: {reason}"
            raise CheckpointError(f"the checkpoint {message}", suggestion=SAME_BASE)
        self.trained.update(weights)

    def _frozen(self, state: Mapping[str, Any]) -> dict[str, Tensor]:
        """Add to the names of the trained part; return the tensors that do not belong to it."""
        self.trained.update(trained_names(state))
        return {name: each.detach() for name, each in state.items() if name not in self.trained}

    def _hash(self, tensors: Mapping[str, Tensor]) -> None:
        tied: dict[Any, bytes] = {}
        for name, tensor in tensors.items():
            stamp = _stamp(tensor)
            if name in self._hashes and self._hashes[name][0] == stamp:
                continue
            key = (stamp, tensor.shape, tensor.stride(), tensor.dtype)
            if key not in tied:
                tied[key] = _digest(tensor)
            self._hashes[name] = (stamp, tied[key])

    def _describe(self, frozen: Mapping[str, Tensor]) -> dict[str, Any]:
        total = hashlib.sha256()
        short = bytearray()
        for name in frozen:
            digest = self._hashes[name][1]
            total.update(name.encode() + b"\0" + digest)
            short += digest[:DIGEST_BYTES]
        return {
            "sha256": total.hexdigest(),
            "tensors": len(frozen),
            "bytes": sum(tensor.nbytes for tensor in frozen.values()),
            "digests": torch.tensor(list(short), dtype=torch.uint8),
        }

    def _without(
        self, frozen: Iterable[str], checkpoint: Mapping[str, Any], base: dict[str, Any]
    ) -> dict[str, Any]:
        """Return a checkpoint without frozen weights, also in the states of hooks."""
        reduced = {**checkpoint, BASE: base}
        left_out = set(frozen)
        for part in PARTS:
            if part in checkpoint:
                weights = checkpoint[part].items()
                reduced[part] = {name: value for name, value in weights if name not in left_out}
        if "hooks" in checkpoint:
            reduced["hooks"] = {}
            for name, state in checkpoint["hooks"].items():
                reduced["hooks"][name] = {
                    key: self._without(left_out, value, base) if _has_weights(value) else value
                    for key, value in state.items()
                }
        return reduced

    def _finish(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def is_partial(checkpoint: Any) -> bool:
    """Return whether a checkpoint has only the trained part of a model."""
    return isinstance(checkpoint, Mapping) and isinstance(checkpoint.get(BASE), Mapping)


def with_base(model: nn.Module, checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint whose weights are complete: the base comes from the model."""
    state = model.state_dict()
    whole = {**checkpoint}
    for part in PARTS:
        if part in checkpoint:
            whole[part] = {**state, **checkpoint[part]}
    whole.pop(BASE, None)
    return whole


def describe_base(base: Mapping[str, Any]) -> str:
    """Return a line about the base of a checkpoint."""
    return (
        f"only the trained part is in this file; the base model has {base['tensors']} tensors, "
        f"{base['bytes']:,} bytes, sha256 {base['sha256']}"
    )


def trained_names(state: Mapping[str, Any]) -> set[str]:
    """Return the names of the weights of a model that training changes.

    Args:
        state: The model's state with the original tensors.
    """
    trained = {name for name, each in state.items() if _is_trained(each)}
    modules = set()
    for name in trained:
        parents = name.split(".")[:-1]
        modules |= {".".join(parents[:length]) for length in range(len(parents) + 1)}
    # Running statistics change in training mode even if the weights beside them are frozen.
    counted = {name.rpartition(".")[0] for name in state if name.endswith("num_batches_tracked")}
    for name, each in state.items():
        owner = name.rpartition(".")[0]
        is_buffer = isinstance(each, Tensor) and not isinstance(each, nn.Parameter)
        if is_buffer and (owner in modules or owner in counted):
            trained.add(name)
    return trained


def _is_trained(value: Any) -> bool:
    """Return whether a value may change: a tensor with a gradient, or state that is no tensor."""
    return not isinstance(value, Tensor) or value.requires_grad


def _has_weights(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("state_dict"), Mapping)


def _state_of(model: nn.Module) -> dict[str, Any]:
    return dict(model.state_dict(keep_vars=True))


def _stamp(tensor: Tensor) -> _Stamp:
    """Return the address of a tensor, the number of writes to it, and the sum of its words.

    Writes through `tensor.data` are not counted, but change the sum.
    """
    writes = None if tensor.is_inference() else tensor._version  # noqa: SLF001  # torch has no public name for it
    content = _bytes_of(tensor)
    if content.storage_offset() % WORD_BYTES:
        content = content.clone()
    whole = len(content) // WORD_BYTES * WORD_BYTES
    total = content[:whole].view(torch.int64).sum() + content[whole:].sum()
    return tensor.data_ptr(), writes, int(total)


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _digest(tensor: Tensor) -> bytes:
    form = f"{tensor.dtype} {tuple(tensor.shape)}"
    content = _bytes_of(tensor).cpu().numpy()
    digest = hashlib.sha256(form.encode())
    digest.update(content.data)
    return digest.digest()


def _difference(
    names: list[str], found: Mapping[str, Any], expected: Mapping[str, Any]
) -> str | None:
    """Return where a base differs first; None if it does not."""
    if found["sha256"] == expected["sha256"]:
        return None
    if len(names) != expected["tensors"]:
        return (
            f"{len(names)} weights of the model are not in the checkpoint, which was saved with a "
            f"base of {expected['tensors']}"
        )
    pairs = zip(found["digests"].tolist(), expected["digests"].tolist(), strict=False)
    for index, (one, other) in enumerate(pairs):
        if one != other:
            return f"first in {names[index // DIGEST_BYTES]!r}"
    return "its weights have other names"
