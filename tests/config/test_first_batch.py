from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.config.first_batch import check_first_batch
from hookline.config.locations import Config
from hookline.errors import ConfigError

CONFIG = Config({"model": {"type": "cnn", "num_classes": 3}}, "config.yaml")
CLASSES = torch.tensor([0, 2])


def problem_of(loss: nn.Module, predictions: object, targets: object, **options: bool):
    check_first_batch(CONFIG, loss, is_default=options.get("is_default", False))
    with pytest.raises(ConfigError) as caught:
        loss(predictions, targets)
    return caught.value.problems[0]


def test_float_targets_do_not_fit_the_default_loss() -> None:
    problem = problem_of(nn.CrossEntropyLoss(), torch.rand(2, 3), torch.rand(2), is_default=True)
    assert (problem.path, problem.parameter) == (("training",), "loss")
    assert problem.file == "config.yaml"


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), nn.NLLLoss(), nn.MultiMarginLoss()])
def test_a_class_without_an_output_is_named(loss: nn.Module) -> None:
    problem = problem_of(loss, torch.rand(2, 3), torch.tensor([0, 3]))
    assert (problem.path, problem.value) == (("model", "num_classes"), 3)


def test_the_model_is_blamed_if_it_has_no_number_of_classes() -> None:
    loss = nn.CrossEntropyLoss()
    check_first_batch(Config({"model": {"type": "cnn"}}), loss, is_default=False)
    with pytest.raises(ConfigError) as caught:
        loss(torch.rand(3), torch.tensor(4))
    assert caught.value.problems[0].path == ("model",)


def test_ignored_targets_and_probabilities_are_no_classes() -> None:
    loss = nn.CrossEntropyLoss(ignore_index=9)
    check_first_batch(CONFIG, loss, is_default=False)
    loss(torch.rand(2, 3), torch.tensor([0, 9]))
    for targets in (torch.full((2,), -100), torch.rand(2, 3)):
        loss = nn.CrossEntropyLoss()
        check_first_batch(CONFIG, loss, is_default=False)
        loss(torch.rand(2, 3), targets)


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss()])
@pytest.mark.parametrize("targets", [torch.rand(2), torch.rand(1, 2, 1), CLASSES])
def test_shapes_that_would_be_broadcast_by_accident_are_refused(loss, targets) -> None:
    problem = problem_of(type(loss)(), torch.rand(2, 1), targets)
    assert problem.path == ("training", "loss")
    assert problem.component == type(loss).__name__
    assert ("CrossEntropyLoss" in problem.suggestion.advice) is (targets is CLASSES)


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_shapes_that_broadcast_to_the_predictions_are_accepted() -> None:
    for targets in (torch.rand(2, 3), torch.rand(1, 3), torch.rand(3), torch.rand(2, 1)):
        loss = nn.MSELoss()
        check_first_batch(CONFIG, loss, is_default=False)
        loss(torch.rand(2, 3), targets)


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_only_the_first_batch_is_checked() -> None:
    loss = nn.MSELoss()
    check_first_batch(CONFIG, loss, is_default=False)
    loss(torch.rand(2, 1), torch.rand(2, 1))
    loss(torch.rand(2, 1), torch.rand(2))


def test_other_losses_are_not_checked() -> None:
    check_first_batch(CONFIG, nn.KLDivLoss(), is_default=False)
    check_first_batch(CONFIG, lambda predictions, targets: 0, is_default=True)
    loss = type("OwnLoss", (nn.CrossEntropyLoss,), {})()
    check_first_batch(CONFIG, loss, is_default=False)
    assert not loss._forward_pre_hooks
