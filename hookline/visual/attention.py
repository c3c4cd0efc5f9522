"""Attention weights of a model's layers, recorded during a forward pass and shown as maps."""

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

from hookline.visual.images import resize_map

MAX_TOKENS = 4096  # larger attention matrices are not computed
MAX_ASPECT_ERROR = 0.2  # between a grid of patches and its image, as a fraction
SDPA_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


class AttentionRecorder:
    """A recorder of the inputs of attention for one sample, between `start` and `stop`.

    `compute_weights` computes the attention weights again from these inputs, because fused
    attention never stores them. The computation of the model does not change.

    Args:
        layers: Modules to record, by name.
        sample: Index of the sample; the last one of a smaller batch.
    """

    def __init__(self, layers: Mapping[str, nn.Module], sample: int) -> None:
        self._layers = layers
        self._sample = sample
        self._stack = ExitStack()
        self._active_layers: list[str] = []
        self._recorded: dict[str, _MultiheadInputs | _FusedInputs] = {}
        self._error: Exception | None = None

    def start(self) -> None:
        """Register forward hooks and intercept `scaled_dot_product_attention`."""
        for name, module in self._layers.items():
            if isinstance(module, nn.MultiheadAttention):
                record = functools.partial(self._keep_error, self._record_multihead, name)
                handles = [module.register_forward_pre_hook(record, with_kwargs=True)]
            else:
                enter = functools.partial(self._enter_layer, name)
                handles = [
                    module.register_forward_pre_hook(enter),
                    module.register_forward_hook(self._leave_layer, always_call=True),
                ]
            for handle in handles:
                self._stack.callback(handle.remove)
        record_fused = functools.partial(self._keep_error, self._record_fused)
        self._stack.enter_context(_SDPAInterceptor(record_fused))

    def stop(self) -> None:
        """Undo `start`; does nothing if the recorder was not started."""
        self._stack.close()
        self._active_layers.clear()

    def compute_weights(self, last: int | None = None) -> dict[str, Tensor]:
        """Return the weights [heads, queries, keys] of each recorded layer, in the model's order.

        Raises an error that occurred while recording.

        Args:
            last: The number of layers, counted from the end; all if None.
        """
        if self._error is not None:
            raise self._error
        names = [name for name in self._layers if name in self._recorded]
        if last is not None:
            names = names[-last:]
        weights = {}
        with torch.no_grad():
            for name in names:
                weights[name] = self._recorded[name].compute_weights().float().cpu()
        return weights

    def _keep_error(self, record: Callable[..., None], *args: Any) -> None:
        """Record something; keep an error for later, because the forward pass must not fail."""
        try:
            record(*args)
        except Exception as error:
            self._error = error

    def _enter_layer(self, name: str, module: nn.Module, args: Any) -> None:
        self._active_layers.append(name)

    def _leave_layer(self, module: nn.Module, args: Any, output: Any) -> None:
        self._active_layers.pop()

    def _record_multihead(
        self,
        name: str,
        module: nn.MultiheadAttention,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        signature = inspect.signature(nn.MultiheadAttention.forward)
        given = signature.bind(module, *args, **kwargs).arguments
        parts = [given["query"], given["key"], given["value"]]
        if any(part.is_nested for part in parts):
            return
        mask = given.get("attn_mask")
        padding = given.get("key_padding_mask")
        if parts[0].ndim == 3:
            batch_axis = 0 if module.batch_first else 1
            index = min(self._sample, parts[0].shape[batch_axis] - 1)
            parts = [part.select(batch_axis, index) for part in parts]
            if mask is not None and mask.ndim == 3:
                mask = mask.unflatten(0, (-1, module.num_heads))[index]
            if padding is not None and padding.ndim == 2:
                padding = padding[index]
        if len(parts[1]) > MAX_TOKENS:
            return
        query, key, value = (part.detach().clone() for part in parts)
        self._recorded[name] = _MultiheadInputs(module, query, key, value, mask, padding)

    def _record_fused(
        self, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
    ) -> None:
        if not self._active_layers or query.ndim < 3:
            return
        if max(query.shape[-2], key.shape[-2]) > MAX_TOKENS:
            return
        index = min(self._sample, query.shape[0] - 1)
        if mask is not None:
            if mask.ndim == query.ndim:
                mask = mask[min(index, mask.shape[0] - 1)]
            mask = mask.detach().clone()
        self._recorded[self._active_layers[-1]] = _FusedInputs(
            query[index].detach().clone(), key[index].detach().clone(), mask, is_causal, scale
        )


class _MultiheadInputs(NamedTuple):
    """Inputs of `nn.MultiheadAttention` for one sample."""

    module: nn.MultiheadAttention
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    padding: Tensor | None

    def compute_weights(self) -> Tensor:
        """Compute the weights without dropout.

        Calls `forward` and not the module: forward hooks of others must not run again.
        """
        # Under autocast the inputs can have another precision than the weights.
        dtype = self.module.out_proj.weight.dtype
        was_training = self.module.training
        self.module.training = False
        try:
            _, weights = self.module.forward(
                self.query.to(dtype),
                self.key.to(dtype),
                self.value.to(dtype),
                key_padding_mask=_cast_if_float(self.padding, dtype),
                attn_mask=_cast_if_float(self.mask, dtype),
                average_attn_weights=False,
            )
        finally:
            self.module.training = was_training
        assert weights is not None
        return weights


class _FusedInputs(NamedTuple):
    """Inputs of `scaled_dot_product_attention` for one sample."""

    query: Tensor
    key: Tensor
    mask: Tensor | None
    is_causal: bool
    scale: float | None

    def compute_weights(self) -> Tensor:
        query = self.query.float()
        key = self.key.float()
        if query.ndim == 2:
            query = query[None]
            key = key[None]
        if len(key) != len(query):  # grouped queries: several heads share their keys
            key = key.repeat_interleave(len(query) // len(key), 0)
        scale = self.scale
        if scale is None:
            scale = 1 / math.sqrt(query.shape[-1])
        scores = query @ key.transpose(-2, -1) * scale
        if self.is_causal:
            allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~allowed, -math.inf)
        if self.mask is not None:
            if self.mask.dtype == torch.bool:
                scores = scores.masked_fill(~self.mask, -math.inf)
            else:
                scores = scores + self.mask
        return scores.softmax(-1)


class _SDPAInterceptor(TorchFunctionMode):
    """Reports each call of `scaled_dot_product_attention`, however it was imported."""

    def __init__(self, record: Callable[..., None]) -> None:
        super().__init__()
        self._record = record

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            given = {**dict(zip(SDPA_ARGUMENTS, args, strict=False)), **kwargs}
            self._record(
                given["query"],
                given["key"],
                given.get("attn_mask"),
                given.get("is_causal", False),
                given.get("scale"),
            )
        return func(*args, **kwargs)


def attention_over_image(weights: np.ndarray, height: int, width: int) -> np.ndarray | None:
    """Return weights [queries, keys] as a map of an image, None if the keys are not its patches.

    The map shows the attention of a class token in front of the patches, or else the mean over all
    queries. The number of keys must fit a grid with the proportions of the image.
    """
    queries, keys = weights.shape
    for class_tokens in (0, 1):
        patches = keys - class_tokens
        rows = _patch_rows(patches, height, width)
        if rows is None:
            continue
        if class_tokens and queries == keys:
            relevance = weights[0, class_tokens:]
        else:
            relevance = weights[:, class_tokens:].mean(0)
        return resize_map(relevance.reshape(rows, -1), height, width)
    return None


def _patch_rows(patches: int, height: int, width: int) -> int | None:
    """Return the number of rows of a grid of patches that has the proportions of an image."""
    if patches <= 0:
        return None
    rows = round(math.sqrt(patches * height / width))
    if rows < 2 or patches % rows:
        return None
    columns = patches // rows
    aspect_ratio = width / height
    if abs(columns / rows - aspect_ratio) >= MAX_ASPECT_ERROR * aspect_ratio:
        return None
    return rows


def _cast_if_float(tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    if tensor is None or not tensor.is_floating_point():
        return tensor
    return tensor.to(dtype)
