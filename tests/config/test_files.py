from __future__ import annotations

import json
from pathlib import Path

from hookline.config.files import read_file
from tests.problems import raises_problem


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_json_and_toml_mean_the_same(tmp_path: Path) -> None:
    values = {
        "seed": 1,
        "model": {"type": "cnn", "width": 0.5},
        "hooks": [{"type": "A", "on": True}, {"type": "B", "schedule": {"wait": 1}}],
    }
    toml = 'seed = 1\nmodel.type = "cnn"\nmodel.width = 0.5\n'
    toml += '[[hooks]]\ntype = "A"\non = true\n[[hooks]]\ntype = "B"\n[hooks.schedule]\nwait = 1\n'
    yaml = "seed: 1\nmodel: {type: cnn, width: 0.5}\nhooks:\n- {type: A, 'on': true}\n- type: B\n  schedule: {wait: 1}\n"
    for name, text in (
        ("c.json", json.dumps(values, indent="\t")),
        ("c.toml", toml),
        ("c.yaml", yaml),
    ):
        assert read_file(write(tmp_path / name, text)).plain() == values


def test_toml_values_know_their_lines(tmp_path: Path) -> None:
    text = 'seed = 1\n\n[model]\ntype = "cnn"\n\n[[hooks]]\ntype = "A"\n\n[[hooks]]\ntype = "B"\n[hooks.schedule]\nwait = 1\n"a.b" = 2\n'
    root = read_file(write(tmp_path / "c.toml", text))
    lines = {path: node.location.line for path, node in root.walk()}
    assert lines[("model", "type")] == 4
    assert lines[("hooks", 0, "type")] == 7
    assert lines[("hooks", 1)] == 9
    assert lines[("hooks", 1, "schedule", "wait")] == 12
    assert lines[("hooks", 1, "schedule", "a.b")] == 13


def test_an_emoji_in_json_is_one_character(tmp_path: Path) -> None:
    assert read_file(
        write(tmp_path / "c.json", json.dumps({"work_dir": "runs/😀\t/"}))
    ).plain() == {"work_dir": "runs/😀\t/"}


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert read_file(write(tmp_path / "c.yaml", "\ufeffseed: 1")).plain() == {"seed": 1}


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path / "digits.yaml", "seed: 1")
    with raises_problem(file=str(tmp_path / "digit.yaml"), nearest="digits.yaml"):
        read_file(tmp_path / "digit.yaml")


def test_a_folder_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").mkdir()
    with raises_problem(file=str(tmp_path / "c.yaml"), line=None):
        read_file(tmp_path / "c.yaml")


def test_an_unreadable_file_is_an_error(unprivileged_folder: Path) -> None:
    path = write(unprivileged_folder / "c.yaml", "seed: 1")
    read_file(path)
    path.chmod(0)
    with raises_problem(file=str(path)) as caught:
        read_file(path)
    assert isinstance(caught.value.__cause__, PermissionError)
