"""A tiny language model with the interface of transformers, its tokenizer and its data."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from hookline.batches import IGNORED
from hookline.data.collators import PaddingCollator

LETTERS = "_.abcdefgh"  # padding and end first


class Letters:
    """A tokenizer with one token for each letter."""

    pad_token_id = 0
    eos_token_id = 1

    def encode(self, text: str) -> list[int]:
        return [LETTERS.index(letter) for letter in text]

    def batch_decode(self, rows: Any, skip_special_tokens: bool = False) -> list[str]:
        texts = ["".join(LETTERS[int(token)] for token in row) for row in rows]
        if skip_special_tokens:
            texts = [text.partition(".")[0].replace("_", "") for text in texts]
        return texts


class NextLetter(Dataset[dict[str, Any]]):
    """Two or three letters, followed by all others up to `f`; every fifth sample is `fg` and `h`."""

    deterministic = True
    collate_fn = PaddingCollator()

    def __init__(self, count: int = 30) -> None:
        self.tokenizer = Letters()
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, Any]:
        start = index % 3
        end = 4 + start + index % 2
        prompt, following = LETTERS[2 + start : end], LETTERS[end:8]
        if index % 5 == 4:
            prompt, following = "fg", "h"
        completion = self.tokenizer.encode(f"{following}.")
        ids = self.tokenizer.encode(prompt)
        return {"input_ids": ids + completion, "labels": [IGNORED] * len(ids) + completion}


class LetterModel(nn.Module):
    """A model that predicts a letter from the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Embedding(len(LETTERS), len(LETTERS))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None
    ) -> dict[str, Tensor | None]:
        logits = self.scores(input_ids)
        if labels is None:
            return {"loss": None, "logits": logits}
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": logits}

    def generate(
        self, input_ids: Tensor, attention_mask: Tensor, max_new_tokens: int, **options: Any
    ) -> Tensor:
        assert options["do_sample"] is False
        for _ in range(max_new_tokens):
            latest = self.scores(input_ids[:, -1:]).argmax(-1)
            input_ids = torch.cat([input_ids, latest], dim=1)
        return input_ids


def knowing_model() -> LetterModel:
    """Return a model that knows the alphabet up to `f`, after which it ends the text."""
    model = LetterModel()
    table = torch.zeros(len(LETTERS), len(LETTERS))
    for index in range(len(LETTERS)):
        table[index, index + 1 if 2 <= index < 7 else 1] = 5.0
    model.scores.weight.data = table
    return model
