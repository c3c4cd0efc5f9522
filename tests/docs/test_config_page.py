"""The page of configs and commands lists every key, command, model and data set, with the right defaults."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hookline.cli.commands import cli
from hookline.config import build, load_config
from hookline.config.schema import (
    DEFAULT_LOSS,
    DEFAULT_METRICS,
    DEFAULT_OPTIMIZER,
    TOP_LEVEL,
    TRAINING,
)
from hookline.data import DATASETS
from hookline.models import MODELS
from hookline.registry import Registry
from hookline.signature import parameters
from tests.checks import all_failures
from tests.docs.pages import DOCS, read

PAGE = read(DOCS / "config.md")
MINIMAL = {"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}
PLAIN_DEFAULTS = [
    "seed",
    "device",
    "resume",
    "load_from",
    "load_strict",
    "strategy",
    "sync_bn",
    "compile",
    "deterministic",
    "hook_order",
    "hook_budget",
]


def table(head: str) -> list[list[str]]:
    """Return the rows of the table whose first column has that name."""
    (rows,) = re.findall(rf"^\| {head} \|.*\n\| --- .*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows.splitlines()]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


KEYS = {name: row for row in table("key") for name in names(row[0])}


def test_every_key_of_a_config_is_listed() -> None:
    assert set(KEYS) | {"experiment_dir"} == set(TOP_LEVEL) | {"base"}
    assert set(TRAINING) <= set(re.findall(r"\w+", KEYS["training"][2]))


def test_keys_have_the_defaults_of_the_table() -> None:
    built = build(load_config(MINIMAL))
    with all_failures() as check:
        for key in PLAIN_DEFAULTS:
            with check(key):
                assert built[key] == yaml.safe_load(names(KEYS[key][1])[0])


def test_parts_have_the_defaults_of_the_table() -> None:
    optimizer = yaml.safe_load(names(KEYS["optimizer"][1])[0])
    optimizer["lr"] = float(optimizer["lr"])  # PyYAML reads 1e-3 as text
    assert optimizer == DEFAULT_OPTIMIZER
    metrics = f"[{', '.join(DEFAULT_METRICS)}]"
    assert {DEFAULT_LOSS["type"], metrics} <= set(names(KEYS["training"][2]))
    loader = build(load_config(MINIMAL))["train_loader"]
    inputs, _ = next(iter(loader))
    assert {"batch_size": len(inputs)} == yaml.safe_load(names(KEYS["loader"][1])[0])


def test_every_command_is_listed_with_its_summary() -> None:
    listed = {names(row[0])[0].removeprefix("hookline "): row[1] for row in table("command")}
    summaries = {}
    for name, command in cli.commands.items():
        summaries[name] = command.get_short_help_str(limit=100).removesuffix(".")
    assert listed == summaries


def test_models_and_data_sets_are_listed_with_their_parameters() -> None:
    registries: dict[str, Registry[Any]] = {"model": MODELS, "data set": DATASETS}
    with all_failures() as check:
        for head, registry in registries.items():
            listed = {name: names(row[2]) for row in table(head) for name in names(row[0])}
            with check(head):
                assert set(listed) == set(registry.names())
            for name, given in listed.items():
                with check(name):
                    assert set(given) <= set(parameters(registry.get(name)).known)
