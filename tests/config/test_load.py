from __future__ import annotations

import copy
from pathlib import Path

import pytest

from hookline.config import Config, load_config
from tests.problems import raises_problem


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_config_is_a_plain_dict_with_locations(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.yaml",
        "seed: 1\nmodel:\n  type: cnn\nhooks:\n  - type: EvalHook\n    interval: 2\n",
    )
    config = load_config(path)
    assert isinstance(config, Config)
    assert isinstance(config, dict)
    assert config.file == str(path)
    assert config["hooks"] == [{"type": "EvalHook", "interval": 2}]
    assert config.location(("hooks", 0, "interval")) == (str(path), 6)
    assert config.location(("hooks", 0, "no", "such")) == (str(path), 5)
    assert config.location(("nothing",)) == (str(path), 1)
    assert copy.deepcopy(config).location(("model",)) == (str(path), 2)


def test_a_base_is_merged_by_key_and_keeps_its_lines(tmp_path: Path) -> None:
    base = write(
        tmp_path / "bases" / "base.yaml",
        "seed: 1\ntraining:\n  epochs: 3\n  metrics: [a, b]\nloader: {batch_size: 2}\n",
    )
    child = write(
        tmp_path / "c.yaml",
        "base: bases/base.yaml\ntraining:\n  metrics: [c]\nloader: {shuffle: true}\n",
    )
    config = load_config(child)
    assert config["training"] == {"epochs": 3, "metrics": ["c"]}
    assert config["loader"] == {"batch_size": 2, "shuffle": True}
    assert "base" not in config
    assert config.location(("training", "epochs")) == (str(base), 3)
    assert config.location(("training", "metrics")) == (str(child), 3)


def test_later_bases_win_over_earlier_ones_and_bases_have_bases(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "seed: 1\ndevice: cpu\nresume: auto\n")
    write(tmp_path / "b.json", '{"seed": 2, "base": "a.yaml"}')
    write(tmp_path / "c.toml", 'seed = 3\nload_from = "x"\n')
    config = load_config(write(tmp_path / "d.yaml", "base: [b.json, c.toml]\nresume: null\n"))
    assert {key: config[key] for key in ("seed", "device", "resume", "load_from")} == {
        "seed": 3,
        "device": "cpu",
        "resume": None,
        "load_from": "x",
    }


def test_a_cycle_of_bases_is_rejected_at_its_last_line(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "base: b.yaml\n")
    write(tmp_path / "b.yaml", "seed: 1\nbase: sub/../a.yaml\n")
    (tmp_path / "sub").mkdir()
    with raises_problem(path=("base",), file=str(tmp_path / "b.yaml"), line=2):
        load_config(tmp_path / "a.yaml")


def test_another_type_replaces_the_parameters_of_the_base(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "model: {type: cnn, width: 8}\noptimizer: {type: SGD, lr: 1}\n")
    config = load_config(
        write(
            tmp_path / "c.yaml",
            "base: base.yaml\nmodel: {type: mlp, hidden: [3]}\noptimizer: {type: SGD, momentum: 0.9}\n",
        )
    )
    assert config["model"] == {"type": "mlp", "hidden": [3]}
    assert config["optimizer"] == {"type": "SGD", "lr": 1, "momentum": 0.9}


BASE_HOOKS = "hooks:\n  - {type: LoggerHook, interval: 5}\n  - {type: CheckpointHook, name: saver, interval: 2}\n  - EvalHook\n"


@pytest.mark.parametrize("form", ["list", "mapping"])
def test_a_list_of_hooks_replaces_those_of_the_base(tmp_path: Path, form: str) -> None:
    write(
        tmp_path / "base.yaml",
        BASE_HOOKS if form == "list" else "hooks: {saver: {type: CheckpointHook}}\n",
    )
    config = load_config(
        write(tmp_path / "c.yaml", "base: base.yaml\nhooks: [{type: EvalHook, interval: 3}]\n")
    )
    assert config["hooks"] == [{"type": "EvalHook", "interval": 3}]


def test_a_mapping_of_hooks_changes_those_of_the_base_by_name(tmp_path: Path) -> None:
    base = write(tmp_path / "base.yaml", BASE_HOOKS)
    text = "base: base.yaml\nhooks:\n  saver: {interval: 9}\n  logger: null\n  eval: {start: 2}\n"
    text += "  mine: {type: some.Hook, x: 1}\n  iter_timer: {interval: 4}\n"
    config = load_config(write(tmp_path / "c.yaml", text))
    assert config["hooks"] == [
        {"type": "CheckpointHook", "name": "saver", "interval": 9},
        {"type": "EvalHook", "start": 2},
        {"type": "some.Hook", "name": "mine", "x": 1},
        {"type": "IterTimerHook", "interval": 4},
    ]
    assert config["drop_hooks"] == ["LoggerHook"]
    assert config.location(("hooks", 0, "name")) == (str(base), 3)
    assert config.location(("hooks", 0, "interval")) == (str(tmp_path / "c.yaml"), 3)


def test_hooks_may_be_a_mapping_by_name(tmp_path: Path) -> None:
    config = load_config(
        write(
            tmp_path / "c.yaml",
            "hooks:\n  timer: IterTimerHook\n  saver: {type: CheckpointHook, interval: 2}\n",
        )
    )
    assert config["hooks"] == [
        {"type": "IterTimerHook", "name": "timer"},
        {"type": "CheckpointHook", "name": "saver", "interval": 2},
    ]


def test_experiment_dir_is_work_dir(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", "experiment_dir: a\n")
    config = load_config(tmp_path / "base.yaml")
    assert (config["work_dir"], config["experiment_dir"]) == ("a", "a")
    child = write(tmp_path / "c.yaml", "base: base.yaml\nwork_dir: b\n")
    config = load_config(child)
    assert (config["work_dir"], config["experiment_dir"]) == ("b", "b")
    config = load_config(child, ["experiment_dir=c"])
    assert (config["work_dir"], config["experiment_dir"]) == ("c", "c")


def test_the_work_dir_is_named_after_the_file_unless_it_is_given(tmp_path: Path) -> None:
    assert load_config(write(tmp_path / "digits.yaml", "seed: 1"))["work_dir"] == "runs/digits"
    assert load_config({"seed": 1})["work_dir"] == "runs/default"


def test_a_mapping_is_as_good_as_a_file(tmp_path: Path) -> None:
    config = load_config(
        {
            "model": {"type": "cnn"},
            "load_from": tmp_path,
            "hooks": {"saver": {"type": "CheckpointHook"}},
        },
        ["seed=3"],
    )
    assert config["hooks"] == [{"type": "CheckpointHook", "name": "saver"}]
    assert config["load_from"] == str(tmp_path)
    assert config["seed"] == 3
    assert config.location(("model",)) == (None, None)


def test_a_loaded_config_can_be_overridden_and_keeps_its_locations(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", "seed: 1\nmodel: {type: cnn}\n")
    config = load_config(load_config(path), ["seed=2"])
    assert config["seed"] == 2
    assert config.location(("model", "type")) == (str(path), 2)
    assert config.location(("seed",)) == ("command line", None)
