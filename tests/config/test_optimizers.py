"""The section `optimizer` of a config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hookline import Runner
from hookline.config import load_config, validate
from hookline.errors import ConfigError


def config(folder: Path, optimizer: str) -> str:
    path = folder / "config.yaml"
    path.write_text(
        f"work_dir: {folder / 'run'}\n"
        "model: {type: cnn, width: 4}\n"
        "dataset: {type: digits}\n"
        "training: {epochs: 1}\n"
        f"optimizer: {optimizer}\n"
    )
    return str(path)


def problems(folder: Path, optimizer: str) -> list[Any]:
    return validate(load_config(config(folder, optimizer)))


def test_groups_of_a_config_reach_the_optimizer(tmp_path: Path) -> None:
    text = "{type: SGD, lr: 0.1, groups: {head: {params: head, lr_factor: 10}}, no_decay: [bias]}"
    runner = Runner.from_config(config(tmp_path, text))
    rates = {group["name"]: group["lr"] for group in runner.optimizer.param_groups}  # type: ignore[union-attr]
    assert rates == {"rest": 0.1, "rest/no_decay": 0.1, "head": 1.0, "head/no_decay": 1.0}


def test_several_optimizers_of_a_config_reach_the_runner(tmp_path: Path) -> None:
    text = '{matrices: {type: Muon, params: "*.weight@2d"}, rest: {lr: 0.01}}'
    runner = Runner.from_config(config(tmp_path, text))
    assert list(runner.optimizer) == ["matrices", "rest"]  # type: ignore[arg-type]
    assert [type(hook).__name__ for hook in runner.sites.hooks["optimize"]] == ["OptimizerHook"]


@pytest.mark.parametrize(
    ("optimizer", "path", "nearest"),
    [
        ("{type: SGD, lr: 0.1, no_deccay: [bias]}", ("optimizer", "no_deccay"), "no_decay"),
        (
            "{type: SGD, groups: {a: {params: head, lr_facto: 2}}}",
            ("optimizer", "groups", "a", "lr_facto"),
            "lr_factor",
        ),
        ("{type: SGD, groups: {a: {lr: 2}}}", ("optimizer", "groups", "a"), None),
        ("{a: {type: SGDD, params: head}, b: {type: SGD}}", ("optimizer", "a", "type"), "SGD"),
        ("{a: {type: SGD, params: head}, b: {lr: -1}}", ("optimizer", "b", "lr"), None),
    ],
)
def test_mistakes_are_found_without_a_model(
    optimizer: str, path: tuple[str, ...], nearest: str | None, tmp_path: Path
) -> None:
    (problem,) = problems(tmp_path, optimizer)
    assert problem.path == path
    assert problem.suggestion.nearest == nearest
    assert problem.line == 5


def test_a_pattern_that_fits_nothing_is_reported_with_its_line(tmp_path: Path) -> None:
    text = "{type: SGD, lr: 0.1, groups: {a: {params: heat}}}"
    with pytest.raises(ConfigError) as caught:
        Runner.from_config(config(tmp_path, text))
    problem = caught.value.problems[0]
    assert problem.path == ("optimizer", "groups", "a", "params")
    assert problem.line == 5
    assert problem.suggestion.nearest == "head"
    assert yaml.safe_load(text)["groups"]["a"]["params"] == problem.value
