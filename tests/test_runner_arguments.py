"""Mistakes in the arguments of a Runner, found before anything is built."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

from hookline import ConfigError, Runner
from hookline.runner_arguments import RULES
from tests.helpers import batches, small_model

MISTAKES = {
    "model": [nn.Linear, "cnn", None],
    "train_loader": ["digits", {"a": [], "b": []}, 3],
    "val_loader": ["digits", 3],
    "optimizer": [torch.optim.SGD, "SGD", [torch.optim.SGD([nn.Parameter()], 0.1)], {}],
    "loss_fn": [nn.MSELoss, "CrossEntropyLoss"],
    "metrics": ["accuracy"],
    "drop_hooks": ["ReportHook"],
    "scheduler": ["cosine", torch.optim.lr_scheduler.StepLR],
    "seed": ["abc", 1.5, True],
    "device": ["gpu", 0],
    "resume": [True],
    "load_from": [False],
    "load_strict": ["yes"],
    "hook_order": ["mirror"],
    "strategy": [2],
    "compile": ["yes"],
    "deterministic": ["yes"],
    "config": ["config.yaml"],
}


def run_with(**arguments) -> Runner:
    model = small_model()
    given = {
        "model": model,
        "train_loader": batches(2),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "loss_fn": nn.CrossEntropyLoss(),
        "max_epochs": 1,
    }
    return Runner(**{**given, **arguments})


@pytest.mark.parametrize("parameter", MISTAKES)
def test_a_wrong_argument_is_named_before_anything_is_built(parameter, tmp_path):
    for value in MISTAKES[parameter]:
        with pytest.raises(ConfigError) as caught:
            run_with(**{"work_dir": tmp_path, parameter: value})
        assert caught.value.component == "Runner"
        assert caught.value.parameter == parameter
        assert caught.value.value is value


def test_a_file_is_no_work_dir(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError) as caught:
        run_with(work_dir=file)
    assert caught.value.parameter == "work_dir"


def test_all_wrong_arguments_are_reported_at_once(tmp_path):
    with pytest.raises(ConfigError) as caught:
        run_with(work_dir=tmp_path, seed="abc", resume=True, device="gpu")
    found = {problem.parameter for problem in caught.value.problems}
    assert found == {"seed", "resume", "device"}


def test_known_mistakes_get_advice(tmp_path):
    for parameter, value in {"resume": True, "device": "gpu", "optimizer": torch.optim.SGD}.items():
        with pytest.raises(ConfigError) as caught:
            run_with(**{"work_dir": tmp_path, parameter: value})
        assert caught.value.suggestion.advice


def test_every_parameter_has_a_rule():
    assert list(RULES) == list(inspect.signature(Runner).parameters)
