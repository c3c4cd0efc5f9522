"""Padding and packing of token sequences."""

from __future__ import annotations

import torch
from torch import nn

from hookline.data.collators import PackingCollator, PaddingCollator

SAMPLES = [
    {"input_ids": [5, 6, 7], "labels": [-100, 6, 7]},
    {"input_ids": [8, 9], "labels": [8, 9]},
    {"input_ids": [3, 4, 5, 6], "labels": [3, 4, 5, 6]},
]


def test_sequences_are_padded_to_the_longest_one():
    batch = PaddingCollator(pad_id=1)(SAMPLES[:2])
    assert batch["input_ids"].tolist() == [[5, 6, 7], [8, 9, 1]]
    assert batch["labels"].tolist() == [[-100, 6, 7], [8, 9, -100]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]


def test_the_padding_may_be_on_the_left():
    batch = PaddingCollator(side="left")(SAMPLES[:2])
    assert batch["input_ids"].tolist() == [[5, 6, 7], [0, 8, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [0, 1, 1]]


def test_classes_and_masks_of_the_samples_are_kept():
    samples = [
        {"input_ids": [1, 2], "attention_mask": [1, 0], "token_type_ids": [1, 1], "labels": 4},
        {"input_ids": [3], "attention_mask": [1], "token_type_ids": [1], "labels": 2},
    ]
    batch = PaddingCollator()(samples)
    assert batch["attention_mask"].tolist() == [[1, 0], [1, 0]]
    assert batch["token_type_ids"].tolist() == [[1, 1], [1, 0]]
    assert batch["labels"].tolist() == [4, 2]


def test_sequences_share_rows_and_see_only_themselves():
    batch = PackingCollator(max_length=6, pad_id=1)(SAMPLES)
    assert batch["input_ids"].tolist() == [[5, 6, 7, 8, 9], [3, 4, 5, 6, 1]]
    assert batch["labels"].tolist() == [[-100, 6, 7, -100, 9], [-100, 4, 5, 6, -100]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 1], [0, 1, 2, 3, 0]]
    assert (batch["attention_mask"][0, 0] == 0).int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 1],
    ]
    padding = (batch["attention_mask"][1, 0, 4] == 0).int()
    assert padding.tolist() == [0, 0, 0, 0, 1]


def test_a_sequence_that_is_too_long_has_its_own_row():
    batch = PackingCollator(max_length=3)(SAMPLES)
    assert batch["input_ids"].shape == (3, 4)


def test_attention_with_the_mask_equals_attention_over_each_sequence_alone():
    torch.manual_seed(0)
    table = nn.Embedding(10, 8)
    attend = nn.functional.scaled_dot_product_attention
    batch = PackingCollator(max_length=6)(SAMPLES)
    x = table(batch["input_ids"]).unsqueeze(1)
    packed = attend(x, x, x, attn_mask=batch["attention_mask"])[0, 0]
    for sample, start in ((SAMPLES[0], 0), (SAMPLES[1], 3)):
        alone = table(torch.tensor([sample["input_ids"]])).unsqueeze(1)
        expected = attend(alone, alone, alone, is_causal=True)[0, 0]
        torch.testing.assert_close(packed[start : start + len(expected)], expected)
