"""AttentionMapHook: which layers are drawn and when, without effect on training."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn

from hookline import drive
from hookline.errors import ConfigError
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
    assert records.names() == [
        (f"AttentionMapHook/{name}", step)
        for step in (0, 2)
        for name in ("layer.self_attn", "fused")
    ]


def test_layers_are_selected_with_wildcards(tmp_path):
    assert run(tmp_path, AttentionMapHook(layers=["fus*"])).names() == [
        ("AttentionMapHook/fused", 0)
    ]
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, AttentionMapHook(layers=["fuse"]))
    assert (caught.value.component, caught.value.parameter) == ("AttentionMapHook", "layers")
    assert caught.value.value == "fuse"
    assert caught.value.suggestion.nearest == "fused"


def test_forward_hooks_are_registered_only_in_iterations_that_are_due(tmp_path):
    registered = []

    class CountsForwardHooks(Transformer):
        def forward(self, inputs):
            registered.append(len(self.fused._forward_pre_hooks))
            return super().forward(inputs)

    model = CountsForwardHooks()
    run(tmp_path, AttentionMapHook(frequency=2), model=model)
    assert registered == [1, 0, 1]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_failing_forward_leaves_no_forward_hook_behind(tmp_path):
    class Fails(Transformer):
        def forward(self, inputs):
            super().forward(inputs)
            raise RuntimeError("no more memory")

    model = Fails()
    with pytest.raises(RuntimeError, match="no more memory"):
        run(tmp_path, AttentionMapHook(), model=model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.overrides._get_current_function_mode_stack() == []


def test_attention_matrices_are_drawn_if_inputs_are_not_images(tmp_path):
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
            self.head = nn.Linear(6, 3)

        def forward(self, inputs):
            tokens = inputs[:, None].expand(-1, 5, -1)
            return self.head(self.attention(tokens, tokens, tokens)[0].mean(1))

    records = run(tmp_path, AttentionMapHook(), model=Sequence(), train_loader=batches())
    assert records.names() == [("AttentionMapHook/attention", 0)]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_under_autocast_the_weights_are_computed_in_the_precision_of_the_layer(
    tmp_path, dtype, caplog
):
    owner = AmpOptimizerHook(dtype=dtype)
    records = run(tmp_path, AttentionMapHook(frequency=2), hooks=[owner], model=Autocast())
    assert records.names() == [
        (f"AttentionMapHook/{name}", step)
        for step in (0, 2)
        for name in ("layer.self_attn", "fused")
    ]
    assert not caplog.messages


class Autocast(Transformer):
    """A transformer whose first layer gets an output in reduced precision."""

    def forward(self, inputs):
        tokens = self.patches(inputs).flatten(2).transpose(1, 2)
        assert tokens.dtype in (torch.bfloat16, torch.float16)
        return self.head(self.fused(self.layer(tokens))[:, 0])


def test_forward_hooks_of_others_run_only_for_the_training_pass(tmp_path):
    plain = Records()
    beside = Records()
    for records, hooks in ((plain, []), (beside, [AttentionMapHook(layers=["layer.self_attn"])])):
        torch.manual_seed(1)
        parts = {"model": Transformer(), "train_loader": images(), "max_iters": 1}
        make_runner(
            tmp_path,
            *hooks,
            FeatureMapHook(layers=["layer.self_attn"]),
            records,
            hook_order="flat",
            **parts,
        ).train()
    (alone,) = [record.value for record in plain.records]
    (both,) = [record.value for record in beside.records if record.name.startswith("Feature")]
    assert (alone == both).all()


def test_only_the_weights_of_drawn_layers_are_computed(tmp_path, monkeypatch):
    computed = []
    model = nn.Sequential(
        nn.Flatten(1),
        nn.Unflatten(1, (4, 16)),
        *[nn.TransformerEncoderLayer(16, 2, 8) for _ in range(4)],
    )
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
    """Attention with another signature."""

    def forward(self, tokens):
        return super().forward(tokens, tokens, tokens)[0]


def test_attention_of_an_unknown_kind_is_reported_once_and_training_continues(tmp_path, caplog):
    model = nn.Sequential(
        nn.Flatten(2),
        nn.Flatten(1),
        nn.Unflatten(1, (4, 16)),
        Unusual(16, 2),
        nn.Flatten(),
        nn.Linear(64, 3),
    )
    assert run(tmp_path, AttentionMapHook(frequency=1), model=model).records == []
    warnings = [text for text in caplog.messages if "cannot compute the attention" in text]
    assert len(warnings) == 1


def test_in_a_driven_loop_forward_hooks_do_not_accumulate(tmp_path):
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


def test_a_mean_for_another_number_of_channels_is_reported_once(tmp_path, caplog):
    hook = AttentionMapHook(frequency=1, mean=[0.5, 0.5], std=[0.5, 0.5])
    assert run(tmp_path, hook).records == []
    warnings = [text for text in caplog.messages if "mean has 2 values" in text]
    assert len(warnings) == 1
    assert warnings[0].startswith("AttentionMapHook: ")


def test_a_model_without_attention_is_reported_once(tmp_path, caplog):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    assert run(tmp_path, AttentionMapHook(frequency=1), model=model).records == []
    assert len([message for message in caplog.messages if "no attention" in message]) == 1
