"""Metrics of language models and of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hookline.batches import IGNORED
from hookline.errors import ConfigError, Suggestion
from hookline.metrics.base import METRICS
from hookline.metrics.means import Mean

GENERATE = Suggestion(advice="use GenerationHook, which generates texts and measures them")


@METRICS.register("perplexity")
class Perplexity(Mean):
    """The perplexity of a language model: e to the mean loss of all tokens.

    Each token counts once, whatever the batches and ranks. Tokens with the label -100 do not count.

    Args:
        shift: Whether the scores of a token predict the next one, as in causal language models.
            If false, they predict the token itself, as in masked ones.
    """

    higher_is_better = False

    def __init__(self, shift: bool = True) -> None:
        self.shift = shift
        super().__init__(self._losses)

    def compute(self) -> Tensor:
        """Return the perplexity, over all ranks in a distributed run; NaN without tokens."""
        return super().compute().exp()

    def _losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        if scores.ndim != 3 or labels.ndim != 2:
            shapes = f"{tuple(scores.shape)} and {tuple(labels.shape)}"
            message = f"needs scores [N, tokens, vocabulary] and labels [N, tokens], got {shapes}"
            raise ConfigError(message, component="Perplexity")
        if self.shift:
            scores, labels = scores[:, :-1], labels[:, 1:]
        counts = labels != IGNORED
        losses = torch.nn.functional.cross_entropy(
            scores[counts].float(), labels[counts], reduction="none"
        )
        return losses if losses.device.type == "mps" else losses.double()


@METRICS.register("exact_match")
class ExactMatch(Mean):
    """The share of generated texts that equal the expected ones, apart from spaces around them."""

    higher_is_better = True

    def __init__(self) -> None:
        super().__init__(_equal)


def _equal(texts: Any, expected: Any) -> Tensor:
    if not _are_texts(texts) or not _are_texts(expected):
        raise ConfigError("compares texts", component="ExactMatch", suggestion=GENERATE)
    pairs = zip(texts, expected, strict=True)
    return torch.tensor([text.strip() == wanted.strip() for text, wanted in pairs])


def _are_texts(values: Any) -> bool:
    return isinstance(values, Sequence) and all(isinstance(value, str) for value in values)
