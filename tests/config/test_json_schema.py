"""The JSON Schema of configs: what it accepts, rejects, and shows in an editor."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
import yaml

from hookline import Runner
from hookline.cli.main import main
from hookline.config.json_schema import COMMON, DESCRIPTIONS, config_schema, type_schema
from hookline.config.schema import SPLITS, TOP_LEVEL, TRAINING
from hookline.docstrings import summary_of
from hookline.engine import HOOKS
from tests.checks import all_failures
from tests.config.language_server import LanguageServer
from tests.docs.pages import BLOCK, DOCS, name_of, read

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


@pytest.mark.parametrize(
    "path", sorted((ROOT / "hookline" / "configs").glob("*.yaml")), ids=lambda p: p.name
)
def test_the_configs_of_this_repository_fit(validator, path):
    assert list(validator.iter_errors(yaml.safe_load(path.read_text()))) == []


def test_the_configs_of_the_documentation_fit(validator):
    checked = 0
    with all_failures() as check:
        for page in sorted(DOCS.rglob("*.md")):
            for language, text in BLOCK.findall(read(page)):
                if language != "yaml":
                    continue
                part = yaml.safe_load(text)
                whole = part if "model" in part else {**MINIMAL, **part}
                checked += 1
                with check(f"{name_of(page)}: {text}"):
                    assert list(validator.iter_errors(whole)) == []
    assert checked > 30


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
        {"lr_config": {"policy": "cosine_annealing", "min_lr": 0.0, "warmup": "linear"}},
        {"lr_config": {"head": {"policy": "step", "step": 3}, "body": {"policy": "Fixed"}}},
        {"lr_config": {"type": "PolyLrUpdaterHook"}, "momentum_config": {"policy": "OneCycle"}},
        {"checkpoint": {"interval": 2, "mirror": "s3://bucket/run"}},
        {"loader": {"batch_size": 8, "val": {"num_workers": 2, "collate_fn": "my.collate"}}},
        {"scheduler": [{"type": "StepLR", "step_size": 2, "by_epoch": True}]},
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
        {"lr_config": {"policy": "cosin", "min_lr": 0.0}},
        {"lr_config": {"policy": "poly", "powr": 2}},
        {"lr_config": {"head": {"policy": "poly", "powr": 2}}},
        {"momentum_config": {"policy": "Poly"}},
        {"checkpoint": {"intervall": 2}},
        {"loader": {"batch_size": "big"}},
        {"loader": {"val": {"shuffel": True}}},
        {"scheduler": {"type": "StepLR", "step_sise": 2}},
    ],
)
def test_wrong_configs_do_not_fit(validator, part):
    assert list(validator.iter_errors({**MINIMAL, **part})) != []


def test_every_key_is_explained(schema):
    properties = schema["properties"]
    assert [key for key in TOP_LEVEL if not properties[key].get("description")] == []
    training = properties["training"]["properties"]
    assert [key for key in TRAINING if not training[key].get("description")] == []
    assert [key for key, part in _loader(schema).items() if not part.get("description")] == []
    for name in ("hook", "optimizer", "scheduler"):
        first = schema["definitions"][name]["anyOf"][2]["properties"]
        assert {
            key for key in COMMON if key in first and not first[key].get("description")
        } == set()


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


OWN_HOOK = """\
from dataclasses import dataclass

from hookline import HOOKS, BaseHook


@HOOKS.register()
@dataclass
class HookOfASchemaTest(BaseHook):
    \"""Do nothing.

    Args:
        often: How often.
    \"""

    often: int = 3
"""


def test_the_command_prints_the_schema_with_classes_of_the_config(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "hooks_of_a_schema_test.py").write_text(OWN_HOOK)
    config = tmp_path / "config.yaml"
    parts = {**MINIMAL, "custom_imports": ["hooks_of_a_schema_test"]}
    config.write_text(yaml.safe_dump(parts))
    assert main(["config", str(config), "--schema"]) == 0
    names, _, *classes, _ = json.loads(capsys.readouterr().out)["definitions"]["hook"]["anyOf"]
    assert {"CheckpointHook", "HookOfASchemaTest"} <= set(names["enum"])
    (own,) = [each for each in classes if each["title"] == "HookOfASchemaTest"]
    assert own["properties"]["often"]["description"] == "How often."


def test_a_config_with_mistakes_has_a_schema(tmp_path, capsys):
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({**MINIMAL, "hooks": [{"type": "EarlyStopingHook"}]}))
    assert main(["config", str(config), "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Hookline config"


def test_a_module_that_cannot_be_imported_is_an_error(tmp_path, capsys):
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({**MINIMAL, "custom_imports": ["no_module_of_this_name"]}))
    assert main(["config", str(config), "--schema"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "there is no module 'no_module_of_this_name'" in output.err


PLUGGED = """\
from hookline import BaseHook


class HookOfAnEntryPoint(BaseHook):
    \"""Come from another package.\"""
"""


@pytest.mark.exhaustive
def test_an_editor_completes_explains_and_underlines_in_a_new_project(tmp_path):
    """The schema comes from the command in the config that `hookline init` writes."""
    assert SERVER, "set HOOKLINE_YAML_SERVER to the program of yaml-language-server"
    site = tmp_path / "site"
    info = site / "plugged-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "hook_of_an_entry_point.py").write_text(PLUGGED)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hookline.hooks]\nHookOfAnEntryPoint = hook_of_an_entry_point:HookOfAnEntryPoint\n"
    )
    assert main(["init", str(tmp_path / "project")]) == 0
    config = tmp_path / "project" / "config.yaml"
    ((command, schema),) = re.findall(r"# hookline (config .*--schema) > (\S+)", config.read_text())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    with open(config.with_name(schema), "w") as file:
        hookline = [sys.executable, "-m", "hookline", *command.split()]
        subprocess.run(hookline, stdout=file, check=True, cwd=config.parent, env=environment)
    text = f"{config.read_text()}\n"
    more = [
        "  - type: EarlyStoppingHook",
        "    patiance: 3",
        "  - type: ",
        "  - type: HookOfAnEntryPoint",
        "lr_config:",
        "  policy: Step",
        "  gama: 0.1",
        "checkpoint: {intervall: 2}",
    ]
    own = text.count("\n")
    edited = config.with_name("edited.yaml")
    edited.write_text(text + "\n".join(more))
    with LanguageServer(SERVER, config.parent) as server:
        uri = server.open(config)
        assert server.diagnostics[uri] == []
        lines = text.splitlines()
        row = next(number for number, line in enumerate(lines) if "LossLogHook" in line)
        assert "Log the loss every" in server.hover(uri, row, lines[row].index("LossLogHook"))
        row = next(number for number, line in enumerate(lines) if "epochs:" in line)
        assert DESCRIPTIONS["epochs"] in server.hover(uri, row, lines[row].index("epochs"))

        uri = server.open(edited)
        underlined = {server.marked(uri, each) for each in server.diagnostics[uri]}
        assert underlined - {""} == {"patiance", "gama", "intervall"}  # and the empty `type:`
        names = server.complete(uri, own + 2, len(more[2]))
        assert {"EMAHook", "LossLogHook", "HookOfAnEntryPoint"} <= set(names)
        assert summary_of(HOOKS.get("EarlyStoppingHook")) in server.hover(uri, own, 12)
        assert "Come from another package." in server.hover(uri, own + 3, 12)


def _loader(schema: dict[str, Any]) -> dict[str, Any]:
    options = schema["properties"]["loader"]["properties"]
    return {key: part for key, part in options.items() if key not in SPLITS}
