"""Mistakes in the arguments of a Runner, found before anything is built."""

from __future__ import annotations

import inspect
import re
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


class CountMetric:
    """One metric, which can be iterated over, as those of torchmetrics."""

    def __iter__(self):
        raise NotImplementedError

    def compute(self):
        return 0.0


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
    "metrics": ["accuracy", {"type": "F1Score"}, CountMetric(), lambda given, wanted: 0.0],
    "hooks": ["EMAHook", EMAHook(), {"type": "EMAHook"}, None],
    "max_epochs": ["3", 3.0, 0],
    "max_iters": ["3", True],
    "max_train_batches": [0, "10"],
    "max_val_batches": [0, "10"],
    "overfit_batches": [0, 1.5],
    "sanity_val_batches": [-1, "2", True],
    "drop_hooks": ["ReportHook"],
    "work_dir": [""],
    "scheduler": ["cosine", ["cosine"], {"type": "StepLR"}, torch.optim.lr_scheduler.StepLR],
    "seed": ["abc", 1.5, True, -1, 2**32],
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
    ("metrics", {"type": "F1Score"}, "a list"),
    ("metrics", CountMetric(), "a list"),
    ("scheduler", "cosine", "CosineAnnealingLR(optimizer"),
    ("scheduler", ["cosine"], "CosineAnnealingLR(optimizer"),
    ("scheduler", {"type": "StepLR"}, "StepLR(optimizer"),
    ("resume", "Auto", "'auto'"),
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


@pytest.mark.parametrize(("parameter", "value"), [("max_epochs", 0), ("sanity_val_batches", -1)])
def test_a_number_that_is_too_small_is_not_suggested_again(tmp_path, parameter, value):
    with pytest.raises(ConfigError) as caught:
        run_with(**{"work_dir": tmp_path, parameter: value})
    assert caught.value.suggestion.advice == ""


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


@pytest.mark.parametrize(
    ("name", "nearest"), [("epochs", "max_epochs"), ("train_dataloader", "train_loader")]
)
def test_an_unknown_argument_is_refused_with_the_nearest_one(tmp_path, name, nearest):
    with pytest.raises(TypeError, match=f"'{name}'.*'{nearest}'"):
        run_with(**{"work_dir": tmp_path, name: 3})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("callbacks", "did you mean 'hooks'"),
        ("limit_train_batches", "did you mean 'max_train_batches'"),
        ("check_val_every_n_epoch", "pass hooks=[EvalHook(interval=…)]"),
        ("fast_dev_run", "call runner.dry_run()"),
    ],
)
def test_an_argument_of_another_framework_is_refused_with_ours(tmp_path, name, advice):
    with pytest.raises(TypeError, match=re.escape(advice)):
        run_with(**{"work_dir": tmp_path, name: 3})


@pytest.mark.parametrize("word", ["last", "best"])
def test_a_word_of_another_framework_is_no_checkpoint(tmp_path, monkeypatch, word):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="use 'auto' for the newest checkpoint"):
        run_with(work_dir=tmp_path, resume=word)
    (tmp_path / word).touch()
    assert run_with(work_dir=tmp_path, resume=word).checkpointer.resume == word


@pytest.mark.parametrize(
    ("given", "named", "advice"),
    [
        (["model", "loader"], {}, "takes no model and no data; pass them to Runner(model, "),
        ([], {"ckpt_path": "last"}, "'ckpt_path'; pass resume=… to Runner(…)"),
        ([], {"resume_from_checkpoint": True}, "pass resume=… to Runner(…)"),
        ([], {"val_loader": []}, "'val_loader'; pass val_loader=… to Runner(…)"),
        ([], {"max_epoch": 3}, "'max_epoch'; did you mean 'max_epochs'?"),
    ],
)
def test_train_names_the_call_that_takes_an_argument(tmp_path, given, named, advice):
    runner = run_with(work_dir=tmp_path)
    with pytest.raises(TypeError, match=re.escape(advice)):
        runner.fit(*given, **named)
    assert runner.iter == 0


def test_every_parameter_has_a_rule():
    parameters = inspect.signature(Runner).parameters.values()
    assert list(RULES) == [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]


def test_the_history_of_a_run_without_a_log_is_an_error(tmp_path):
    runner = run_with(work_dir=tmp_path)
    with pytest.raises(HooklineError) as caught:
        _ = runner.history
    assert "train()" in caught.value.suggestion.advice
    assert "train/loss" in runner.train().history.curves()
