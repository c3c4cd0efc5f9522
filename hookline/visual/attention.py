"""Attention weights of a model's layers, taken while it works, and made into maps."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from hookline.visual.images import resized

MOST_TOKENS = 4096  # a matrix of more than that squared is not computed
SDPA_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


class Listener:
    """Notes what goes into attention for one sample, from `start` to `stop`; what the model computes is not touched.

    The weights are computed again from that, by `weights`, because fused attention never has them.
    """

    def __init__(self, layers: Mapping[str, nn.Module], sample: int) -> None:
        self._layers, self._sample = layers, sample
        self._undo = ExitStack()
        self._inside: list[str] = []
        self._noted: dict[str, Any] = {}
        self._problem: Exception | None = None

    def start(self) -> None:
        for name, module in self._layers.items():
            if isinstance(module, nn.MultiheadAttention):
                note = functools.partial(self._try, self._note_multihead, name)
                self._undo.callback(module.register_forward_pre_hook(note, with_kwargs=True).remove)
            else:
                self._undo.callback(module.register_forward_pre_hook(lambda *_, name=name: self._inside.append(name)).remove)
                self._undo.callback(module.register_forward_hook(lambda *_: self._leave(), always_call=True).remove)
        self._undo.enter_context(_Watch(functools.partial(self._try, self._note_fused)))

    def stop(self) -> None:
        """Listen no longer; does nothing if it did not."""
        self._undo.close()
        self._inside.clear()

    def weights(self, last: int = 0) -> dict[str, Tensor]:
        """The weights [heads, queries, keys] of each layer that was heard, in the order of the model; of the last ones only if wanted."""
        if self._problem is not None:
            raise self._problem
        heard = [name for name in self._layers if name in self._noted]
        with torch.no_grad():
            return {name: self._noted[name].weights().float().cpu() for name in heard[-last:]}

    def _try(self, note: Callable[..., None], *args: Any) -> None:
        """Note something in the middle of a forward pass, which is not to fail for it; `weights` tells what went wrong."""
        try:
            note(*args)
        except Exception as error:
            self._problem = error

    def _leave(self) -> None:
        self._inside.pop()

    def _note_multihead(self, name: str, module: nn.MultiheadAttention, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = inspect.signature(nn.MultiheadAttention.forward).bind(module, *args, **kwargs).arguments
        parts = [given[part] for part in ("query", "key", "value")]
        batched = parts[0].ndim == 3
        batch = 0 if module.batch_first else 1
        length = parts[1].shape[1 - batch] if batched else len(parts[1])
        if any(part.is_nested for part in parts) or length > MOST_TOKENS:
            return
        place = min(self._sample, parts[0].shape[batch] - 1) if batched else 0
        mask, padding = given.get("attn_mask"), given.get("key_padding_mask")
        if mask is not None and mask.ndim == 3:
            mask = mask.unflatten(0, (-1, module.num_heads))[place]
        if padding is not None and padding.ndim == 2:
            padding = padding[place]
        kept = [part.detach().select(batch, place).clone() if batched else part.detach().clone() for part in parts]
        self._noted[name] = _Multihead(module, kept, mask, padding)

    def _note_fused(self, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> None:
        if not self._inside or query.ndim < 3 or max(query.shape[-2], key.shape[-2]) > MOST_TOKENS:
            return
        place = min(self._sample, query.shape[0] - 1)
        mask = mask[min(place, mask.shape[0] - 1)] if mask is not None and mask.ndim == query.ndim else mask
        query, key = (part[place].detach().clone() for part in (query, key))
        self._noted[self._inside[-1]] = _Fused(query, key, None if mask is None else mask.detach().clone(), is_causal, scale)


class _Multihead(NamedTuple):
    """What one sample gave to `nn.MultiheadAttention`."""

    module: nn.MultiheadAttention
    parts: list[Tensor]
    mask: Tensor | None
    padding: Tensor | None

    def weights(self) -> Tensor:
        """As the module itself tells them if asked, without dropout; not called as a module, or others that listen to it would hear."""
        kind = self.module.out_proj.weight.dtype  # what was given may be of another one, where the forward was under autocast
        query, key, value = (part.to(kind) for part in self.parts)
        mask, padding = (each.to(kind) if each is not None and each.is_floating_point() else each for each in (self.mask, self.padding))
        training, self.module.training = self.module.training, False
        try:
            _, weights = self.module.forward(query, key, value, padding, attn_mask=mask, average_attn_weights=False)
            assert weights is not None
            return weights
        finally:
            self.module.training = training


class _Fused(NamedTuple):
    """What one sample gave to `scaled_dot_product_attention`."""

    query: Tensor
    key: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float | None

    def weights(self) -> Tensor:
        query, key = self.query.float(), self.key.float()
        if query.ndim == 2:
            query, key = query[None], key[None]
        if key.shape[0] != query.shape[0]:  # several heads share their keys
            key = key.repeat_interleave(query.shape[0] // key.shape[0], 0)
        scores = query @ key.transpose(-2, -1) * (self.scale if self.scale is not None else 1 / math.sqrt(query.shape[-1]))
        if self.is_causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril(), -math.inf)
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, -math.inf) if self.mask.dtype == torch.bool else scores + self.mask
        return scores.softmax(-1)


class _Watch(TorchFunctionMode):
    """Sees each call of `scaled_dot_product_attention`, however it was imported, and passes it on as it is."""

    def __init__(self, note: Any) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            given = {**dict(zip(SDPA_ARGUMENTS, args, strict=False)), **kwargs}
            self._note(given["query"], given["key"], given.get("attn_mask"), given.get("is_causal", False), given.get("scale"))
        return func(*args, **kwargs)


def over_image(weights: np.ndarray, height: int, width: int) -> np.ndarray | None:
    """Weights [queries, keys] as a map of an image: what the class token attends to, or else what all patches do on average.

    None where the number of keys fits no grid of patches that has the image's proportions.
    """
    for special in (0, 1):  # a class token, in front of the patches
        patches = weights.shape[-1] - special
        rows = round(math.sqrt(patches * height / width)) if patches > 0 else 0
        if rows > 1 and patches % rows == 0 and abs(patches // rows / rows - width / height) < 0.2 * width / height:
            row = weights[0, special:] if special and weights.shape[0] == weights.shape[-1] else weights[..., special:].mean(0)
            return resized(row.reshape(rows, -1), height, width)
    return None
