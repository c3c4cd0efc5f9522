"""The page of configs and commands lists what there is, no more and no less, with the defaults that hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hookline.cli.arguments import COMMANDS
from hookline.config import build, load_config
from hookline.config.schema import DEFAULT_LOSS, DEFAULT_METRICS, DEFAULT_OPTIMIZER, TOP_LEVEL, TRAINING
from hookline.data import DATASETS
from hookline.models import MODELS
from hookline.registry import Registry
from hookline.signature import parameters

PAGE = (Path(__file__).parents[2] / "docs" / "config.md").read_text(encoding="utf-8")


def table(head: str) -> list[list[str]]:
    """The rows of the table with a first column of that name."""
    (rows,) = re.findall(rf"^\| {head} \|.*\n\| --- .*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows.splitlines()]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


KEYS = {name: row for row in table("key") for name in names(row[0])}


def test_every_key_of_a_config_is_listed() -> None:
    assert set(KEYS) | {"experiment_dir"} == set(TOP_LEVEL) | {"base"}
    assert set(TRAINING) <= set(re.findall(r"\w+", KEYS["training"][2]))


@pytest.mark.parametrize(
    "key", ["seed", "device", "resume", "load_from", "load_strict", "strategy", "sync_bn", "compile", "hook_order", "hook_budget"]
)
def test_a_key_that_is_left_out_has_the_default_of_the_table(key: str) -> None:
    built = build(load_config({"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}))
    assert built[key] == yaml.safe_load(names(KEYS[key][1])[0])


def test_parts_that_are_left_out_are_those_of_the_table() -> None:
    def number(text: str) -> Any:
        return {key: float(value) if key == "lr" else value for key, value in yaml.safe_load(text).items()}

    assert number(names(KEYS["optimizer"][1])[0]) == DEFAULT_OPTIMIZER
    assert {DEFAULT_LOSS["type"], f"[{', '.join(DEFAULT_METRICS)}]"} <= set(names(KEYS["training"][2]))
    loader = build(load_config({"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}))["train_loader"]
    assert {"batch_size": len(next(iter(loader))[0])} == yaml.safe_load(names(KEYS["loader"][1])[0])


def test_every_command_is_listed_with_what_it_does() -> None:
    listed = {names(row[0])[0].removeprefix("hookline "): row[1] for row in table("command")}
    assert listed == {name: command.summary for name, command in COMMANDS.items()}


@pytest.mark.parametrize(("head", "registry"), [("model", MODELS), ("data set", DATASETS)])
def test_models_and_data_sets_that_come_with_the_package_are_listed_with_their_parameters(head: str, registry: Registry[Any]) -> None:
    listed = {name: names(row[2]) for row in table(head) for name in names(row[0])}
    assert set(listed) == set(registry.names())
    for name, given in listed.items():
        assert set(given) <= set(parameters(registry.get(name)).known), name
