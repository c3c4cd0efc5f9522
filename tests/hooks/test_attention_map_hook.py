"""Attention maps: right weights, over the image, of layers of both kinds."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn

from hookline import drive
from hookline.hooks import AmpOptimizerHook, AttentionMapHook, FeatureMapHook
from tests.helpers import batches, make_runner
from tests.visual.picture_parts import Records, Transformer, images


def run(tmp_path, hook, **parts):
    records = Records()
    parts = {"model": Transformer(), "train_loader": images(), "max_iters": 3, **parts}
    make_runner(tmp_path, *parts.pop("hooks", []), hook, records, **parts).train()
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


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_under_autocast_the_weights_are_computed_in_the_precision_of_the_layer(tmp_path, dtype, caplog):
    owner = AmpOptimizerHook(dtype=dtype)
    records = run(tmp_path, AttentionMapHook(frequency=2), hooks=[owner], model=Rough())
    assert records.names() == [(f"AttentionMapHook/{name}", step) for step in (0, 2) for name in ("layer.self_attn", "fused")]
    assert not caplog.messages


class Rough(Transformer):
    """Its first layer gets what a layer under autocast has put out."""

    def forward(self, inputs):
        tokens = self.patches(inputs).flatten(2).transpose(1, 2)
        assert tokens.dtype in (torch.bfloat16, torch.float16)
        return self.head(self.fused(self.layer(tokens))[:, 0])


def test_other_hooks_that_listen_hear_only_the_training(tmp_path):
    plain, beside = Records(), Records()
    for records, hooks in ((plain, []), (beside, [AttentionMapHook(layers=["layer.self_attn"])])):
        torch.manual_seed(1)
        parts = {"model": Transformer(), "train_loader": images(), "max_iters": 1}
        make_runner(tmp_path, *hooks, FeatureMapHook(layers=["layer.self_attn"]), records, hook_order="flat", **parts).train()
    (mine,) = [record.value for record in plain.records]
    (theirs,) = [record.value for record in beside.records if record.name.startswith("Feature")]
    assert (mine == theirs).all()


def test_only_the_layers_that_are_drawn_are_computed_again(tmp_path, monkeypatch):
    computed = []
    model = nn.Sequential(nn.Flatten(1), nn.Unflatten(1, (4, 16)), *[nn.TransformerEncoderLayer(16, 2, 8) for _ in range(4)])
    model.extend([nn.Flatten(), nn.Linear(64, 3)])
    own = nn.MultiheadAttention.forward

    @functools.wraps(own)
    def forward(self, *args, **options):
        if options.get("average_attn_weights") is False:
            computed.append(self)
        return own(self, *args, **options)

    monkeypatch.setattr(nn.MultiheadAttention, "forward", forward)
    run(tmp_path, AttentionMapHook(), model=model)
    assert computed == [layer.self_attn for layer in model[4:6]]


class Unusual(nn.MultiheadAttention):
    """Takes what no other attention takes."""

    def forward(self, tokens):
        return super().forward(tokens, tokens, tokens)[0]


def test_attention_of_an_unknown_kind_is_told_once_and_training_goes_on(tmp_path, caplog):
    model = nn.Sequential(nn.Flatten(2), nn.Flatten(1), nn.Unflatten(1, (4, 16)), Unusual(16, 2), nn.Flatten(), nn.Linear(64, 3))
    assert run(tmp_path, AttentionMapHook(frequency=1), model=model).records == []
    assert len([message for message in caplog.messages if "cannot compute the attention again" in message]) == 1


def test_in_a_loop_that_does_not_say_when_the_forward_is_over_nothing_piles_up(tmp_path):
    model, records = Transformer(), Records()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hooks = [AttentionMapHook(frequency=1), FeatureMapHook(frequency=1), records]
    with drive(hooks, model, optimizer, images(), max_epochs=1, work_dir=tmp_path) as loop:
        for inputs, targets in loop:
            assert len(model.patches._forward_hooks) == 2  # one of each
            assert len(torch.overrides._get_current_function_mode_stack()) == 1
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
    assert torch.overrides._get_current_function_mode_stack() == []
    names = ["AttentionMapHook/layer.self_attn", "AttentionMapHook/fused", "FeatureMapHook/patches"]
    assert sorted(records.names()) == sorted((name, step) for step in range(4) for name in names)


def test_a_mean_that_does_not_fit_is_told_and_not_passed_over(tmp_path, caplog):
    assert run(tmp_path, AttentionMapHook(frequency=1, mean=[0.5, 0.5], std=[0.5, 0.5])).records == []
    told = "AttentionMapHook: cannot draw: mean has 2 values, but the inputs have 1 channels"
    assert caplog.messages.count(told) == 1


def test_a_model_without_attention_is_told_once(tmp_path, caplog):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    assert run(tmp_path, AttentionMapHook(frequency=1), model=model).records == []
    assert len([message for message in caplog.messages if "no attention was seen" in message]) == 1
