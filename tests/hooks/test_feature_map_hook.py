"""FeatureMapHook: which outputs are drawn and when, without effect on training."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import FeatureMapHook
from hookline.visual.backends import render
from hookline.visual.heat_maps import as_maps, draw_feature_maps, name_maps
from hookline.visual.images import channels_last, find_scaling, to_rgb
from tests.helpers import make_runner
from tests.visual.picture_parts import Records


def images(count=4, size=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(size, 1, 8, 8, generator=generator),
            torch.randint(3, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def conv_model():
    torch.manual_seed(0)
    features = [
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 6, 3),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
    ]
    return nn.Sequential(
        nn.Sequential(*features),
        nn.Conv2d(6, 8, 3),
        nn.Conv2d(8, 20, 1),
        nn.Flatten(),
        nn.Linear(20 * 4, 3),
    )


def run(tmp_path, *hooks, **parts):
    records = Records()
    runner = make_runner(
        tmp_path,
        *hooks,
        records,
        model=parts.pop("model", None) or conv_model(),
        train_loader=images(),
        **parts,
    )
    runner.train()
    return runner, records.records


def expected(output, inputs, title, limit=16):
    """Return the picture of a sample's output beside its input."""
    image = channels_last(inputs.numpy())
    pixels = to_rgb(image, find_scaling([image]))
    sample = np.asarray(output)
    names = name_maps(sample, limit)
    return render(draw_feature_maps(as_maps(sample, limit), title, names, pixels))


def test_the_last_three_convolutions_are_drawn_when_due(tmp_path):
    _, records = run(tmp_path, FeatureMapHook(frequency=3))
    assert [(record.iter, record.name) for record in records] == [
        (step, f"FeatureMapHook/{layer}") for step in (0, 3, 6) for layer in ("0.3", "1", "2")
    ]
    files = sorted(
        str(path.relative_to(tmp_path / "visualizations")) for path in tmp_path.rglob("*.png")
    )
    assert files == [
        f"FeatureMapHook/{layer}/step_{step:06d}.png"
        for layer in ("0.3", "1", "2")
        for step in (0, 3, 6)
    ]
    saved = Image.open(tmp_path / "visualizations/FeatureMapHook/1/step_000003.png")
    assert np.array_equal(saved, records[4].value)


def test_a_run_with_pictures_ends_bit_identical_to_one_without(tmp_path):
    def final(*hooks):
        random.seed(1)
        np.random.seed(1)
        model = conv_model()
        torch.manual_seed(2)
        modes = []

        class Modes(BaseHook):
            def after_train_iter(self, model):
                modes.append([module.training for module in model.modules()])

        run(tmp_path, *hooks, Modes(), model=model, max_epochs=3)
        return model.state_dict(), (random.random(), np.random.rand(), torch.rand(1).item()), modes

    plain = final()
    drawn = final(FeatureMapHook(frequency=1))
    assert all(torch.equal(plain[0][key], drawn[0][key]) for key in plain[0])
    assert plain[1:] == drawn[1:]


def test_forward_hooks_are_registered_only_in_iterations_that_are_due(tmp_path):
    registered = []

    class CountsForwardHooks(nn.Sequential):
        def forward(self, inputs):
            registered.append(len(self[1]._forward_hooks))
            return super().forward(inputs)

    run(tmp_path, FeatureMapHook(frequency=3), model=CountsForwardHooks(*conv_model()))
    assert registered == [1, 0, 0, 1, 0, 0, 1, 0]


def test_the_picture_is_the_output_of_the_layer_for_the_chosen_sample(tmp_path):
    model = conv_model()
    first_batch = images()[0][0]
    output = model[0][0](first_batch).detach()  # the next layers work in place
    _, records = run(
        tmp_path, FeatureMapHook(layers=["0.0"], sample_batch_idx=2, max_features=3), model=model
    )
    (record,) = records
    assert (record.kind, record.name, record.iter) == ("image", "FeatureMapHook/0.0", 0)
    title = "0.0 (4 × 6 × 6), step 0: the first 3 of 4"
    picture = expected(output[2], first_batch[2], title, limit=3)
    # A convolution rounds differently with another number of threads.
    assert np.abs(record.value.astype(int) - picture).max() <= 3


def test_a_sample_beyond_the_batch_is_the_last_one(tmp_path):
    _, records = run(tmp_path / "a", FeatureMapHook(layers=["1"], sample_batch_idx=99))
    _, last = run(tmp_path / "b", FeatureMapHook(layers=["1"], sample_batch_idx=4))
    assert np.array_equal(records[0].value, last[0].value)


def test_at_most_max_features_channels_are_drawn(tmp_path):
    _, few = run(tmp_path / "few", FeatureMapHook(layers=["2"], max_features=2))
    _, all_of_them = run(tmp_path / "all", FeatureMapHook(layers=["2"], max_features=100))
    zeros = np.zeros((20, 2, 2))
    image = images()[0][0][0]
    assert len(few[0].value) == len(expected(zeros, image, "", limit=2))
    assert len(all_of_them[0].value) == len(expected(zeros, image, "", limit=100))


def test_maps_of_a_model_without_images_have_no_input_beside_them(tmp_path):
    tokens = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 3))
    data = [(torch.randint(9, (2, 5)), torch.randint(3, (2,)))]
    records = Records()
    hook = FeatureMapHook(layers=["0"])
    make_runner(tmp_path, hook, records, model=tokens, train_loader=data, max_iters=1).train()
    (record,) = records.records
    sample = np.zeros((5, 4))
    maps = draw_feature_maps(as_maps(sample, 16), "0 (5 × 4), step 0", name_maps(sample, 16))
    assert record.value.shape == render(maps).shape


def test_layers_are_selected_with_wildcards_and_need_not_be_convolutions(tmp_path):
    _, records = run(tmp_path, FeatureMapHook(layers=["0.[03]", "4"]))
    assert [record.name.rpartition("/")[2] for record in records] == ["0.0", "0.3", "4"]
    title = "4 (3), step 0"
    assert records[2].value.shape == expected(np.zeros(3), images()[0][0][0], title).shape


def test_a_missing_layer_is_an_error_before_the_first_batch(tmp_path):
    model = nn.Sequential()
    model.features, model.head = nn.Conv2d(1, 1, 8), nn.Flatten()
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, FeatureMapHook(layers=["featurs"]), model=model)
    assert (caught.value.component, caught.value.parameter) == ("FeatureMapHook", "layers")
    assert caught.value.value == "featurs"
    assert caught.value.suggestion.nearest == "features"


def test_a_model_without_convolutions_is_reported_once(tmp_path, caplog):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    runner, records = run(tmp_path, FeatureMapHook(frequency=1), model=model)
    assert runner.iter == 8
    assert records == []
    assert len([message for message in caplog.messages if "no convolutions" in message]) == 1


def test_layers_without_output_are_reported_once(tmp_path, caplog):
    class Unused(nn.Module):
        def __init__(self):
            super().__init__()
            self.idle, self.head = nn.Conv2d(1, 1, 1), nn.Linear(64, 3)

        def forward(self, inputs):
            return self.head(inputs.flatten(1))

    run(tmp_path, FeatureMapHook(frequency=1), model=Unused())
    assert (
        len([message for message in caplog.messages if "no layer returned an output" in message])
        == 1
    )


def test_a_failing_forward_leaves_no_forward_hook_behind(tmp_path):
    class Fails(nn.Sequential):
        def forward(self, inputs):
            super().forward(inputs)
            raise RuntimeError("no more memory")

    model = Fails(*conv_model())
    with pytest.raises(RuntimeError, match="no more memory"):
        run(tmp_path, FeatureMapHook(), model=model)
    assert not any(module._forward_hooks for module in model.modules())


def test_two_instances_save_their_pictures_in_separate_folders(tmp_path):
    run(tmp_path, FeatureMapHook(layers=["1"]), FeatureMapHook(layers=["1"], sample_batch_idx=1))
    assert {path.parent.parent.name for path in tmp_path.rglob("*.png")} == {
        "FeatureMapHook",
        "FeatureMapHook_2",
    }


@pytest.mark.parametrize(
    ("parameter", "value"), [("frequency", 0), ("max_features", 0), ("sample_batch_idx", -1)]
)
def test_a_wrong_parameter_is_rejected(parameter, value):
    with pytest.raises(ConfigError) as caught:
        FeatureMapHook(**{parameter: value})
    assert (caught.value.parameter, caught.value.value) == (parameter, value)
