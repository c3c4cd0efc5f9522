"""Attention weights, computed again from the inputs of a layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from hookline.visual.attention import AttentionRecorder, attention_over_image


def record(model, *inputs, sample=0, **kwargs):
    """Return the attention weights of a forward pass by layer, and its output."""
    layers = {name: module for name, module in model.named_modules() if name}
    recorder = AttentionRecorder(layers, sample)
    recorder.start()
    output = model(*inputs, **kwargs)
    recorder.stop()
    return recorder.compute_weights(), output


class Multihead(nn.Module):
    def __init__(self, **options):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(8, 2, **options)

    def forward(self, query, memory, **options):
        return self.attention(query, memory, memory, **options)


class Fused(nn.Module):
    """Calls fused attention in a named submodule."""

    class Layer(nn.Module):
        def forward(self, query, key, value, **options):
            return F.scaled_dot_product_attention(query, key, value, **options)

    def __init__(self):
        super().__init__()
        self.attention = self.Layer()

    def forward(self, *parts, **options):
        return self.attention(*parts, **options)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_weights_of_multihead_attention_are_those_that_it_returns(batch_first, need_weights):
    model = Multihead(batch_first=batch_first, dropout=0.3)
    query, memory = torch.randn(3, 5, 8), torch.randn(3, 7, 8)
    parts = (query, memory) if batch_first else (query.transpose(0, 1), memory.transpose(0, 1))
    weights, _ = record(model, *parts, sample=1, need_weights=need_weights)
    assert model.attention.training
    expected = model.eval().attention(*parts, parts[1], average_attn_weights=False)[1][1]
    torch.testing.assert_close(weights["attention"], expected)


def test_masks_and_padding_of_multihead_attention_are_applied():
    model = Multihead(batch_first=True)
    tokens = torch.randn(2, 4, 8)
    mask = torch.ones(4, 4, dtype=torch.bool).triu(1)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    weights, _ = record(model, tokens, tokens, sample=1, attn_mask=mask, key_padding_mask=padding)
    assert weights["attention"][:, :, 2:].abs().max() == 0
    assert weights["attention"][:, 0, 1].abs().max() == 0
    torch.testing.assert_close(weights["attention"].sum(-1), torch.ones(2, 4))


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"scale": 0.7}, {"mask": "bool"}, {"mask": "added"}]
)
def test_weights_of_fused_attention_reproduce_its_output(options):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 5, 4), torch.randn(3, 2, 5, 4), torch.randn(3, 2, 5, 6)
    kind = options.pop("mask", None)
    if kind is not None:
        allowed = torch.rand(3, 1, 5, 5) > 0.3
        allowed |= torch.eye(5, dtype=torch.bool)
        options["attn_mask"] = (
            allowed if kind == "bool" else torch.zeros(3, 1, 5, 5).masked_fill(~allowed, -1e9)
        )
    weights, output = record(Fused(), query, key, value, sample=2, **options)
    torch.testing.assert_close(weights["attention"] @ value[2], output[2])


def test_the_last_layers_can_be_selected():
    model = nn.Sequential(*[nn.TransformerEncoderLayer(8, 2, 16) for _ in range(3)])
    layers = {name: module for name, module in model.named_modules() if name}
    recorder = AttentionRecorder(layers, 0)
    recorder.start()
    model(torch.randn(5, 2, 8))
    recorder.stop()
    assert list(recorder.compute_weights(last=2)) == ["1.self_attn", "2.self_attn"]


def test_heads_can_share_keys():
    query, key, value = torch.randn(1, 4, 5, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    weights, output = record(Fused(), query, key, value, enable_gqa=True)
    torch.testing.assert_close(weights["attention"] @ value[0].repeat_interleave(2, 0), output[0])


def test_recording_does_not_change_the_output():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
    inputs = torch.randn(2, 5, 8)
    torch.manual_seed(1)
    plain = layer(inputs)
    torch.manual_seed(1)
    weights, recorded = record(nn.Sequential(layer), inputs)
    assert torch.equal(plain, recorded)
    assert list(weights) == ["0.self_attn"]


def test_the_map_of_a_class_token_lies_over_the_patches():
    weights = np.zeros((17, 17))
    weights[0, 1 + 4 * 1 + 2] = 1.0  # the class token looks at the patch in row 1, column 2
    heat = attention_over_image(weights, 8, 8)
    assert heat.shape == (8, 8)
    assert np.unravel_index(heat.argmax(), heat.shape)[0] in (2, 3)
    assert np.unravel_index(heat.argmax(), heat.shape)[1] in (4, 5)
    assert heat[6:, :2].max() == 0


def test_without_a_class_token_the_mean_over_all_queries_is_mapped():
    weights = np.zeros((8, 8))
    weights[:, 7] = 1.0
    heat = attention_over_image(weights, 20, 40)
    assert heat.shape == (20, 40)
    assert heat[-1, -1] == 1


@pytest.mark.parametrize("keys", [1, 7, 13])
def test_keys_that_form_no_grid_have_no_map(keys):
    assert attention_over_image(np.ones((keys, keys)), 8, 8) is None
