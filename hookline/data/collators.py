"""Collators of token sequences: padding, and packing several sequences into one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from hookline.batches import IGNORED

Sample = Mapping[str, Any]


@dataclass
class PaddingCollator:
    """A collator that pads token sequences to the longest one of their batch.

    It adds `attention_mask` if the samples have none. Padding is 0 there, `pad_id` in `input_ids`,
    -100 in `labels` and 0 in all other sequences. Numbers, such as the label of a class, become a
    tensor with one dimension.

    Args:
        pad_id: The token for padding.
        side: The side of the padding.
    """

    pad_id: int = 0
    side: Literal["right", "left"] = "right"

    deterministic = True  # It draws no random numbers.

    def __call__(self, samples: Sequence[Sample]) -> dict[str, Tensor]:
        """Return the batch of some samples."""
        columns = {name: [sample[name] for sample in samples] for name in samples[0]}
        if "attention_mask" not in columns:
            columns["attention_mask"] = [[1] * len(ids) for ids in columns["input_ids"]]
        return {name: self._as_tensor(name, values) for name, values in columns.items()}

    def _as_tensor(self, name: str, values: list[Any]) -> Tensor:
        if not isinstance(values[0], (Sequence, Tensor)):
            return torch.tensor(values)
        fill = {"input_ids": self.pad_id, "labels": IGNORED}.get(name, 0)
        width = max(len(value) for value in values)
        rows = []
        for value in values:
            padding = [fill] * (width - len(value))
            rows.append([*padding, *value] if self.side == "left" else [*value, *padding])
        return torch.tensor(rows)


@dataclass
class PackingCollator:
    """A collator that puts several token sequences into one row, for causal language models.

    A sequence is put into the first row that has room for it. Its tokens see only earlier tokens of
    the same sequence: `attention_mask` has the dimensions [rows, 1, width, width], with 0 for
    visible tokens and the lowest number for others. `position_ids` begin with 0 in each sequence.
    The label of a first token is -100, because nothing before it predicts it.

    Args:
        max_length: The largest width of a row. A longer sequence has its own row.
        pad_id: The token for padding at the end of a row.
    """

    max_length: int
    pad_id: int = 0

    deterministic = True  # It draws no random numbers.

    def __call__(self, samples: Sequence[Sample]) -> dict[str, Tensor]:
        """Return the batch of some samples, with at most as many rows."""
        rows = self._fill_rows(samples)
        width = max(sum(len(sample["input_ids"]) for sample in row) for row in rows)
        input_ids = torch.full((len(rows), width), self.pad_id)
        labels = torch.full((len(rows), width), IGNORED)
        positions = torch.zeros((len(rows), width), dtype=torch.long)
        sequence = torch.zeros((len(rows), width), dtype=torch.long)  # 0 is the padding
        for index, row in enumerate(rows):
            start = 0
            for number, sample in enumerate(row, start=1):
                end = start + len(sample["input_ids"])
                input_ids[index, start:end] = torch.as_tensor(sample["input_ids"])
                labels[index, start:end] = torch.as_tensor(sample["labels"])
                labels[index, start] = IGNORED
                positions[index, start:end] = torch.arange(end - start)
                sequence[index, start:end] = number
                start = end
        return {
            "input_ids": input_ids,
            "labels": labels,
            "position_ids": positions,
            "attention_mask": _causal_mask(sequence),
        }

    def _fill_rows(self, samples: Sequence[Sample]) -> list[list[Sample]]:
        rows: list[list[Sample]] = []
        lengths: list[int] = []
        for sample in samples:
            size = len(sample["input_ids"])
            for index, length in enumerate(lengths):
                if length + size <= self.max_length:
                    rows[index].append(sample)
                    lengths[index] += size
                    break
            else:
                rows.append([sample])
                lengths.append(size)
        return rows


def padding_token(tokenizer: Any) -> int:
    """Return the token for padding; a tokenizer without one pads with its end token, or 0."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0


def _causal_mask(sequence: Tensor) -> Tensor:
    """Return the mask in which a token sees itself and earlier tokens of its sequence."""
    is_same = sequence.unsqueeze(2) == sequence.unsqueeze(1)
    is_visible = is_same.tril().unsqueeze(1)
    mask = torch.zeros(is_visible.shape)
    return mask.masked_fill(~is_visible, torch.finfo(mask.dtype).min)
