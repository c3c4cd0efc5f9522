"""Attention maps: right weights, over the image, of layers of both kinds."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.hooks import AttentionMapHook
from tests.helpers import batches, make_runner
from tests.visual.picture_parts import Records, Transformer, images


def run(tmp_path, hook, **parts):
    records = Records()
    parts = {"model": Transformer(), "train_loader": images(), "max_iters": 3, **parts}
    make_runner(tmp_path, hook, records, **parts).train()
    return records


def test_layers_of_both_kinds_are_drawn_when_due(tmp_path):
    records = run(tmp_path, AttentionMapHook(frequency=2))
    assert records.names() == [(f"AttentionMapHook/{name}", step) for step in (0, 2) for name in ("layer.self_attn", "fused")]


def test_layers_can_be_named_with_wildcards(tmp_path):
    assert run(tmp_path, AttentionMapHook(layers=["fus*"])).names() == [("AttentionMapHook/fused", 0)]
    with pytest.raises(ValueError, match="AttentionMapHook: no layer is named 'fuse'; did you mean 'fused'"):
        run(tmp_path, AttentionMapHook(layers=["fuse"]))


def test_the_layers_are_listened_to_only_while_due_and_left_as_they_were(tmp_path):
    listening = []

    class Watched(Transformer):
        def forward(self, inputs):
            listening.append(len(self.fused._forward_pre_hooks))
            return super().forward(inputs)

    model = Watched()
    run(tmp_path, AttentionMapHook(frequency=2), model=model)
    assert listening == [1, 0, 1]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_failing_forward_leaves_nothing_behind(tmp_path):
    class Fails(Transformer):
        def forward(self, inputs):
            super().forward(inputs)
            raise RuntimeError("no more memory")

    model = Fails()
    with pytest.raises(RuntimeError, match="no more memory"):
        run(tmp_path, AttentionMapHook(), model=model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.overrides._get_current_function_mode_stack() == []


def test_inputs_that_are_no_images_get_the_matrices(tmp_path):
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.head = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 3)

        def forward(self, inputs):
            tokens = inputs[:, None].expand(-1, 5, -1)
            return self.head(self.attention(tokens, tokens, tokens)[0].mean(1))

    records = run(tmp_path, AttentionMapHook(), model=Sequence(), train_loader=batches())
    assert records.names() == [("AttentionMapHook/attention", 0)]


def test_a_model_without_attention_is_told_once(tmp_path, caplog):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    assert run(tmp_path, AttentionMapHook(frequency=1), model=model).records == []
    assert len([message for message in caplog.messages if "no attention was seen" in message]) == 1
