from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from hookline.dist.strategy import DEFAULT_TIMEOUT_S, MethodModule, Strategy, choose_strategy
from hookline.errors import ConfigError

ONE, TWO = SimpleNamespace(size=1), SimpleNamespace(size=2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("auto", Strategy("ddp")),
        ("ddp", Strategy("ddp")),
        ("fsdp", Strategy("fsdp")),
        ({}, Strategy("ddp")),
        ({"type": "ddp", "timeout": 4}, Strategy("ddp", {}, 4.0)),
        ({"static_graph": True}, Strategy("ddp", {"static_graph": True})),
        ({"type": "fsdp", "wrap": ["Block"]}, Strategy("fsdp", {"wrap": ["Block"]})),
    ],
)
def test_several_ranks_use_ddp_unless_another_strategy_is_given(given, expected) -> None:
    assert choose_strategy(given, TWO) == expected


@pytest.mark.parametrize("given", ["auto", "single", "ddp", "fsdp", {"static_graph": True}])
def test_one_process_needs_no_strategy(given) -> None:
    assert choose_strategy(given, ONE) == Strategy("single", {}, DEFAULT_TIMEOUT_S)


@pytest.mark.parametrize(
    ("given", "parameter", "nearest"),
    [
        ("dpd", None, "ddp"),
        ("single", None, None),
        ({"timeout": 0}, "timeout", None),
        ({"timeout": True}, "timeout", None),
        ({"timeout": "4"}, "timeout", None),
        ({"static_grap": True}, "static_grap", "static_graph"),
        ({"timeot": 3}, "timeot", "timeout"),
        ({"type": "fsdp", "static_graph": True}, "static_graph", None),
    ],
)
def test_a_wrong_strategy_is_refused(given, parameter: str | None, nearest: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        choose_strategy(given, TWO)
    assert (caught.value.component, caught.value.parameter) == ("strategy", parameter)
    assert caught.value.suggestion.nearest == nearest


def test_a_module_calls_a_method_of_a_model_and_has_its_parameters() -> None:
    class Model(nn.Linear):
        def train_step(self, batch):
            return {"loss": self(batch).sum()}

    model = Model(2, 1)
    module = MethodModule(model, "train_step")
    assert module(torch.ones(1, 2)) == model.train_step(torch.ones(1, 2))
    assert [id(each) for each in module.parameters()] == [id(each) for each in model.parameters()]
