"""Patterns that choose parameters by name, module type and shape."""

from __future__ import annotations

import pytest
from torch import nn

from hookline.errors import ConfigError
from hookline.optim.patterns import assign, list_parameters, select


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 3))])
        self.head = nn.Linear(3, 2)


def names(patterns: str | list[str]) -> list[str]:
    return [each.name for each in select(patterns, list_parameters(Blocks()))]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("head", ["head.weight", "head.bias"]),
        ("blocks.0", [f"blocks.0.{at}.{kind}" for at in (0, 1) for kind in ("weight", "bias")]),
        ("*.1.weight", ["blocks.0.1.weight"]),
        ("norm", ["blocks.0.0.weight", "blocks.0.0.bias"]),
        ("Embedding", ["embed.weight"]),
        ("*.weight@2d", ["embed.weight", "blocks.0.1.weight", "head.weight"]),
        ("*.weight@Linear", ["blocks.0.1.weight", "head.weight"]),
        ("@LayerNorm", ["blocks.0.0.weight", "blocks.0.0.bias"]),
        (["head.bias", "embed"], ["embed.weight", "head.bias"]),
    ],
)
def test_a_pattern_chooses_by_name_type_and_shape(
    patterns: str | list[str], expected: list[str]
) -> None:
    assert names(patterns) == expected


def test_a_tied_parameter_is_chosen_once_under_its_first_name() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    assert [each.name for each in select("*.weight", list_parameters(model))] == ["0.weight"]


@pytest.mark.parametrize(("pattern", "nearest"), [("heat", "head"), ("LayrNorm", "LayerNorm")])
def test_a_pattern_that_fits_nothing_is_an_error_with_the_nearest_name(
    pattern: str, nearest: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        names(pattern)
    assert caught.value.value == pattern
    assert caught.value.suggestion.nearest == nearest


@pytest.mark.parametrize("patterns", [[], "", ["head", ""]])
def test_an_empty_pattern_is_an_error(patterns: str | list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        names(patterns)
    assert caught.value.parameter == "params"


def test_each_parameter_is_chosen_under_one_name() -> None:
    parameters = list_parameters(Blocks())
    owners = assign({"last": "head", "norms": ["norm"]}, parameters, "groups")
    chosen = {
        each.name: owners[id(each.tensor)] for each in parameters if id(each.tensor) in owners
    }
    assert chosen == {
        "blocks.0.0.weight": "norms",
        "blocks.0.0.bias": "norms",
        "head.weight": "last",
        "head.bias": "last",
    }
    with pytest.raises(ConfigError) as caught:
        assign({"last": "head", "biases": "*.bias"}, parameters, "groups", ("groups",))
    assert caught.value.path == ("groups", "biases", "params")
    with pytest.raises(ConfigError) as caught:
        assign({"last": "heat"}, parameters, "groups", ("groups",))
    assert caught.value.path == ("groups", "last", "params")
