"""Mistakes in the arguments of a Runner, found before anything is built."""

from __future__ import annotations

import inspect
from functools import partial

import pytest
import torch
from torch import nn

from hookline import ConfigError, Runner
from hookline.data import make_loader
from hookline.errors import HooklineError
from hookline.hooks import EMAHook
from hookline.runner_arguments import RULES
from tests.helpers import batches, small_model

MISTAKES = {
    "model": [nn.Linear, "cnn", None],
    "train_loader": [
        "digits",
        3,
        [make_loader(batches(2))],
        lambda: batches(2),
    ],
    "val_loader": ["digits", 3, [make_loader(batches(2))]],
    "test_loader": ["digits", 3, [make_loader(batches(2))]],
    "optimizer": [
        torch.optim.SGD,
        "SGD",
        [torch.optim.SGD([nn.Parameter()], 0.1)],
        {},
        nn.Linear(2, 2).parameters(),
    ],
    "loss_fn": [nn.MSELoss, "CrossEntropyLoss"],
    "metrics": ["accuracy"],
    "hooks": ["EMAHook", EMAHook(), {"type": "EMAHook"}, None],
    "max_epochs": ["3", 3.0, 0],
    "max_iters": ["3", True],
    "max_train_batches": [0, "10"],
    "max_val_batches": [0, "10"],
    "overfit_batches": [0, 1.5],
    "sanity_val_batches": [-1, "2", True],
    "drop_hooks": ["ReportHook"],
    "scheduler": ["cosine", torch.optim.lr_scheduler.StepLR],
    "seed": ["abc", 1.5, True],
    "device": ["gpu", 0, "CPU", "cuda:99"],
    "resume": [True, False],
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


@pytest.mark.parametrize("below", ["", "run", "runs/3"])
def test_a_file_is_no_work_dir(tmp_path, below):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError) as caught:
        run_with(work_dir=file / below)
    assert caught.value.parameter == "work_dir"
    assert str(file) in caught.value.suggestion.advice


def test_all_wrong_arguments_are_reported_at_once(tmp_path):
    with pytest.raises(ConfigError) as caught:
        run_with(work_dir=tmp_path, seed="abc", resume=True, device="gpu")
    found = {problem.parameter for problem in caught.value.problems}
    assert found == {"seed", "resume", "device"}


ADVICE = [
    ("metrics", "accuracy", "['accuracy']"),
    ("optimizer", torch.optim.SGD, "SGD(…)"),
    ("optimizer", "adam", "Adam(model.parameters(), lr=…)"),
    ("optimizer", [torch.optim.SGD([nn.Parameter()], 0.1)], "the optimizer itself"),
    ("optimizer", nn.Linear(2, 2).parameters(), "SGD(model.parameters()"),
    ("scheduler", "cosine", "CosineAnnealingLR(optimizer"),
    ("loss_fn", "cross_entropy", "CrossEntropyLoss()"),
    ("resume", True, "'auto'"),
    ("seed", "1", "pass 1"),
    ("max_epochs", "3", "pass 3"),
    ("max_iters", 20.0, "pass 20"),
    ("device", "gpu", "'cuda'"),
    ("device", 0, "'cuda:0'"),
    ("device", "CPU", "'cpu'"),
    ("device", "cuda:99", "cpu"),
    ("hook_order", "nestd", "'nested'"),
    ("hooks", EMAHook(), "list"),
    ("val_loader", [make_loader(batches(2))], "dict"),
]


@pytest.mark.parametrize(
    ("parameter", "value", "nearest"), ADVICE, ids=[f"{row[0]}-{row[2]}" for row in ADVICE]
)
def test_a_known_mistake_gets_the_nearest_right_thing(tmp_path, parameter, value, nearest):
    lengths = {"max_epochs": None} if parameter == "max_iters" else {}
    with pytest.raises(ConfigError) as caught:
        run_with(**{"work_dir": tmp_path, **lengths, parameter: value})
    assert nearest in caught.value.suggestion.advice


def test_a_message_has_one_line_for_each_mistake(tmp_path):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ConfigError) as caught:
        run_with(work_dir=tmp_path, optimizer=[optimizer], train_loader=[make_loader([1])])
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize("once", [partial(map, tuple), lambda given: (each for each in given)])
def test_batches_that_can_be_read_only_once_are_refused_for_several_epochs(tmp_path, once):
    runner = run_with(work_dir=tmp_path, train_loader=once(batches(2)), max_epochs=2)
    with pytest.raises(HooklineError) as caught:
        runner.train()
    assert caught.value.parameter == "train_loader"
    assert runner.iter == 0


def test_every_parameter_has_a_rule():
    assert list(RULES) == list(inspect.signature(Runner).parameters)
