from __future__ import annotations

from pathlib import Path

import yaml
from torch import nn

from hookline.events.describe import config_text, describe_model, flat, run_config, summary
from tests.helpers import make_runner


def test_a_run_built_from_objects_is_described(tmp_path: Path) -> None:
    config = run_config(make_runner(tmp_path, seed=3))
    assert config["model"] == "Sequential"
    assert config["loss"] == "CrossEntropyLoss"
    assert (config["max_epochs"], config["max_iters"], config["seed"]) == (2, 8, 3)
    assert config["optimizer"]["type"] == "SGD"
    assert config["optimizer"]["lr"] == 0.1
    assert "params" not in config["optimizer"]


def test_the_config_of_a_run_has_its_secrets_masked(tmp_path: Path) -> None:
    runner = make_runner(tmp_path)
    runner.config = {"model": {"type": "cnn"}, "hooks": [{"api_key": "hunter22"}]}
    config = run_config(runner)
    assert config["model"] == {"type": "cnn"}
    assert "hunter22" not in str(config)


def test_a_config_is_text_of_plain_values_in_its_order() -> None:
    config = {"z": Path("a"), "a": (1, {"ü": None}), 3: True}
    text = config_text(config)
    assert yaml.safe_load(text) == {"z": "a", "a": [1, {"ü": None}], "3": True}
    assert text.index("z") < text.index("a:")
    assert "ü" in text


def test_nested_values_have_a_path_and_plain_lists_stay() -> None:
    config = {"a": {"b": 1, "c": [1, 2]}, "d": [{"e": 2}, 3], "f": Path("g"), "h": {}}
    assert flat(config) == {"a.b": 1, "a.c": [1, 2], "d.0.e": 2, "d.1": 3, "f": "g"}


def test_a_model_is_summarized_by_its_parameters_and_layers() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(1000, 2).requires_grad_(False))
    first, _, *layers = summary(model).splitlines()
    assert first == describe_model(model)
    assert layers[0] == "Sequential("


def test_a_model_is_described_by_layers_parameters_and_memory() -> None:
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.BatchNorm1d(2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    described = describe_model(model)
    assert described == "Sequential, 3 layers, 17 parameters (7 trainable), 92 B"


def test_parameters_without_a_shape_do_not_count() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.Linear(256, 1024))
    assert describe_model(model) == (
        "Sequential, 2 layers, 263,168 parameters (263,168 trainable), 1.1 MB"
    )
