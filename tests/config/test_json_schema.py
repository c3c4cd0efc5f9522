"""The JSON Schema of configs: what it accepts, rejects, and shows in an editor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
import yaml

from hookline import Runner
from hookline.cli.main import main
from hookline.config.json_schema import DESCRIPTIONS, config_schema, type_schema
from hookline.config.schema import TOP_LEVEL, TRAINING
from hookline.docstrings import summary_of
from hookline.engine import HOOKS
from tests.config.language_server import LanguageServer

ROOT = Path(__file__).parents[2]
SERVER = os.environ.get("HOOKLINE_YAML_SERVER", "")
MINIMAL: dict[str, Any] = {"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return config_schema(Runner)


@pytest.fixture(scope="module")
def validator(schema: dict[str, Any]) -> jsonschema.Draft7Validator:
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.name)
def test_the_configs_of_this_repository_fit(validator, path):
    assert list(validator.iter_errors(yaml.safe_load(path.read_text()))) == []


@pytest.mark.parametrize(
    "part",
    [
        {"hooks": [{"type": "EarlyStoppingHook", "patience": 3, "priority": "LOW"}]},
        {"hooks": ["EMAHook", "my_package.MyHook", {"type": "my_package.MyHook", "any": 1}]},
        {"hooks": {"logger": {"interval": 5}, "checkpoint": None}},
        {"optimizer": {"type": "AdamW", "lr": 0.1, "no_decay": ["bias"]}},
        {"optimizer": {"a": {"type": "Muon", "params": "*.weight@2d"}, "rest": "AdamW"}},
        {"dataset": {"train": {"type": "my.Data", "split": "train"}, "val": "digits"}},
        {"seed": "${other}", "training": {"epochs": "${length}"}},
    ],
)
def test_right_configs_fit(validator, part):
    assert list(validator.iter_errors({**MINIMAL, **part})) == []


@pytest.mark.parametrize(
    "part",
    [
        {"sede": 3},
        {"seed": "three"},
        {"hooks": [{"type": "EarlyStoppingHook", "patiance": 3}]},
        {"hooks": [{"type": "EarlyStopingHook"}]},
        {"hooks": [{"type": "EarlyStoppingHook", "patience": "long"}]},
        {"optimizer": {"type": "AdamW", "lrr": 0.1}},
        {"training": {"epoch": 3}},
        {"loader": {"batchsize": 3}},
        {"hook_order": "sideways"},
        {"drop_hooks": ["LogerHook"]},
    ],
)
def test_wrong_configs_do_not_fit(validator, part):
    assert list(validator.iter_errors({**MINIMAL, **part})) != []


def test_every_key_is_explained(schema):
    properties = schema["properties"]
    assert [key for key in TOP_LEVEL if not properties[key].get("description")] == []
    training = properties["training"]["properties"]
    assert [key for key in TRAINING if not training[key].get("description")] == []


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, {"type": "integer"}),
        (float | None, {"anyOf": [{"type": "number"}, {"type": "null"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object"}),
        (int | object, {}),
        (object, {}),
    ],
)
def test_types_have_schemas(hint, expected):
    assert type_schema(hint) == expected


def test_the_command_prints_the_schema_with_classes_of_the_config(tmp_path, capsys):
    config = tmp_path / "config.yaml"
    parts = {**MINIMAL, "custom_imports": ["tests.config.my_parts"]}
    config.write_text(yaml.safe_dump(parts))
    assert main(["config", str(config), "--schema"]) == 0
    names = json.loads(capsys.readouterr().out)["definitions"]["hook"]["anyOf"][0]["enum"]
    assert "CheckpointHook" in names


@pytest.mark.exhaustive
def test_an_editor_completes_explains_and_underlines(tmp_path, schema):
    assert SERVER, "set HOOKLINE_YAML_SERVER to the program of yaml-language-server"
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    config = tmp_path / "config.yaml"
    lines = [
        "# yaml-language-server: $schema=schema.json",
        "model: mlp",
        "dataset: digits",
        "training: {epochs: 1}",
        "hooks:",
        "  - type: EarlyStoppingHook",
        "    patiance: 3",
        "  - type: ",
    ]
    config.write_text("\n".join(lines))
    with LanguageServer(SERVER, tmp_path) as server:
        uri = server.open(config)
        assert 6 in [each["range"]["start"]["line"] for each in server.diagnostics[uri]]
        assert "EMAHook" in server.complete(uri, 7, len(lines[7]))
        assert summary_of(HOOKS.get("EarlyStoppingHook")) in server.hover(uri, 5, 12)
        assert DESCRIPTIONS["epochs"] in server.hover(uri, 3, 12)
