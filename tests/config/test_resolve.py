from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.config import load_config
from hookline.errors import ConfigError
from tests.problems import raises_problem


def load(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return load_config(path)


def test_values_refer_to_each_other_and_to_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_ROOT", "/data")
    text = "work_dir: runs/x\nseed: 3\ndataset: {type: a, root: '${oc.env:DATA_ROOT}/b'}\n"
    text += "hooks:\n  - {out_dir: '${work_dir}/y', n: '${seed}', all: '${dataset}'}\n"
    config = load(tmp_path, text)
    assert config["dataset"]["root"] == "/data/b"
    assert config["hooks"] == [
        {"out_dir": "runs/x/y", "n": 3, "all": {"type": "a", "root": "/data/b"}}
    ]
    assert type(config["hooks"][0]["all"]) is dict


def test_the_default_work_dir_can_be_referred_to(tmp_path: Path) -> None:
    assert load(tmp_path, "hooks: [{out_dir: '${work_dir}/y'}]")["hooks"] == [
        {"out_dir": "runs/c/y"}
    ]


def test_an_escaped_dollar_stays_text(tmp_path: Path) -> None:
    assert load(tmp_path, "a: '\\${b}'")["a"] == "${b}"


def test_every_unresolved_reference_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH", raising=False)
    text = "seed: 1\na: ${sede}\nb:\n  - ${oc.env:NO_SUCH}\nc: ${c}\n"
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    found = [(problem.line, problem.path) for problem in caught.value.problems]
    assert found == [(2, ("a",)), (4, ("b", 0)), (5, ("c",))]
    assert caught.value.suggestion.nearest == "seed"


@pytest.mark.parametrize("value", ["${", "${a", "${a}}${", "???", "${no.such:1}"])
def test_a_broken_reference_is_reported_with_its_line(tmp_path: Path, value: str) -> None:
    with raises_problem(path=("x",), file=str(tmp_path / "c.yaml"), line=2):
        load(tmp_path, f"a: 1\nx: '{value}'\n")
