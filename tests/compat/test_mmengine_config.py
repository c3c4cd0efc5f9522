"""MMEngine's Config: files that build on each other, changes from the command line, and programs that are run only when named."""

from __future__ import annotations

import argparse
import copy
import pickle
from pathlib import Path

import pytest

from hookline.compat.mmengine.config import Config, ConfigDict, DictAction
from hookline.compat.mmengine.logging import MMLogger


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


BASE = "model = dict(type='Net', depth=18, neck=dict(width=4, kind='a'))\nlr = 0.1\n"


def test_a_python_config_stands_on_its_bases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    MMLogger.get_instance(str(tmp_path))  # the current one from now on, at the level INFO
    write(tmp_path / "base.py", BASE)
    child = "_base_ = ['./base.py']\nimport math\nmodel = dict(depth=50, neck=dict(_delete_=True, width=8))\nrate = {{_base_.lr}} * 2\n"
    cfg = Config.fromfile(write(tmp_path / "child.py", child))
    assert cfg.model == {"type": "Net", "depth": 50, "neck": {"width": 8}}
    assert (cfg.rate, cfg.lr) == (0.2, 0.1)
    assert "math" not in cfg
    output = capsys.readouterr().out
    assert f"running the Python config {tmp_path / 'child.py'}" in output
    assert f"running the Python config {tmp_path / 'base.py'}" in output


YAML = "_base_: base.py\nmodel:\n  depth: 34\nrate: '{{_base_.lr}}'\n"
JSON = '{"_base_": "base.py", "model": {"depth": 34}, "rate": "{{_base_.lr}}"}'


@pytest.mark.parametrize(("name", "text"), [("child.yaml", YAML), ("child.json", JSON)])
def test_yaml_and_json_stand_on_bases_too(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / "base.py", BASE)
    cfg = Config.fromfile(write(tmp_path / name, text))
    assert (cfg.model.depth, cfg.model.type, cfg.rate) == (34, "Net", 0.1)


def test_names_of_the_file_and_of_the_environment_are_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIDTH", "7")
    text = "work_dir = 'runs/{{ fileBasenameNoExtension }}'\nwidth = {{$WIDTH:3}}\ndepth = {{$NO_SUCH_NAME:5}}\n"
    cfg = Config.fromfile(write(tmp_path / "mine.py", text))
    assert (cfg.work_dir, cfg.width, cfg.depth) == ("runs/mine", 7, 5)


def test_values_are_changed_by_dotted_keys(tmp_path: Path) -> None:
    cfg = Config({"model": {"depth": 18}, "hooks": [{"type": "A", "n": 1}, {"type": "B"}]})
    parser = argparse.ArgumentParser()
    parser.add_argument("--cfg-options", nargs="+", action=DictAction)
    options = parser.parse_args(
        ["--cfg-options", "model.depth=50", "hooks.0.n=2", "names=a,b", "flag=true", "pair=(1,2)"]
    ).cfg_options
    cfg.merge_from_dict(options)
    assert cfg.model.depth == 50
    assert cfg.hooks[0].n == 2
    assert (cfg["names"], cfg.flag, cfg.pair) == (["a", "b"], True, (1, 2))


@pytest.mark.parametrize("suffix", [".py", ".json", ".yaml"])
def test_a_dumped_config_is_the_same_when_it_is_loaded(tmp_path: Path, suffix: str) -> None:
    cfg = Config(
        {"a": 1, "b": {"c": [1, 2, {"d": "x'y"}], "e": None}, "f": {"odd-key": 1.5}, "g": True}
    )
    cfg.dump(tmp_path / f"dumped{suffix}")
    assert Config.fromfile(tmp_path / f"dumped{suffix}").to_dict() == cfg.to_dict()


def test_python_is_run_from_a_local_file_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="from a local file"):
        Config.fromstring("import os", ".py")
    with pytest.raises(FileNotFoundError):
        Config.fromfile("https://example.org/config.py")
    with pytest.raises(ValueError, match="not a local file"):
        Config.fromfile(write(tmp_path / "x.py", "_base_ = 'mmdet::base.py'\n"))
    with pytest.raises(NotImplementedError, match="read_base"):
        Config.fromfile(
            write(
                tmp_path / "y.py",
                "from mmengine.config import read_base\nwith read_base():\n    from .base import *\n",
            )
        )
    assert Config.fromstring("a: 1", ".yaml").a == 1


def test_mistakes_are_rejected(tmp_path: Path) -> None:
    write(tmp_path / "base.py", BASE)
    with pytest.raises(TypeError, match="_delete_=True"):
        Config.fromfile(write(tmp_path / "child.py", "_base_ = 'base.py'\nlr = dict(a=1)\n"))
    with pytest.raises(KeyError, match="Duplicate key"):
        Config.fromfile(write(tmp_path / "twice.py", "_base_ = ['base.py', 'base.py']\n"))
    with pytest.raises(AttributeError, match="did you mean 'depth'"):
        _ = Config({"depth": 1}).dept
    with pytest.raises(KeyError, match="reserved"):
        Config({"filename": "x"})


def test_configs_are_copied_and_pickled_whole() -> None:
    cfg = Config({"a": {"b": [1]}}, filename="x.py")
    deep = copy.deepcopy(cfg)
    deep.a.b.append(2)
    assert (cfg.a.b, deep.filename) == ([1], "x.py")
    assert pickle.loads(pickle.dumps(cfg)).to_dict() == cfg.to_dict()
    assert type(copy.deepcopy(cfg.a)) is ConfigDict
    cfg.new = {"c": 1}
    assert cfg.new.c == 1
