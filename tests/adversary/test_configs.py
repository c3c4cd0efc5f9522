"""Hostile configs: each is refused with its place, soon and without a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.config import load_config
from hookline.config.resolve import MAX_EXPANDED_CHARACTERS
from hookline.errors import ConfigError
from tests.cli.helpers import write_config


def doubling(levels: int) -> dict[str, str]:
    """Return values of which each refers to the next one twice."""
    values = {f"a{level}": f"${{a{level + 1}}}${{a{level + 1}}}" for level in range(levels)}
    return {**values, f"a{levels}": "x"}


HOSTILE = {
    "doubling text": json.dumps(doubling(30)),
    "doubling lists": json.dumps(
        {**{f"a{i}": [f"${{a{i + 1}}}", f"${{a{i + 1}}}"] for i in range(30)}, "a30": ["x"]}
    ),
    "doubling through a resolver": json.dumps(
        {f"a{i}": f"${{oc.select:a{i + 1}}}${{oc.select:a{i + 1}}}" for i in range(30)}
    ),
    "nested interpolations": "a: '" + "${" * 199 + "x" + "}" * 199 + "'",
    "nested and open": "a: '" + "${" * 299 + "'",
    "nested brackets": "a: '${oc.decode:" + "[" * 2000 + "]" * 2000 + "}'",
    "many interpolations": "x: 1\na: '" + "${x}" * 10_000 + "'",
    "a cycle": "a: ${b}\nb: ${c}\nc: ${a}",
    "deep yaml": "a: " + "[" * 5000 + "]" * 5000,
    "aliases": "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*{'a' if not i else f'b{i - 1}'}, "
    f"*{'a' if not i else f'b{i - 1}'}]\n" for i in range(30)),
    "a tag": "a: !!python/object/apply:os.system [true]",
    "two keys": "a: 1\na: 2",
    "no text": "a: \x00",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "command"),
    [*((name, "plan") for name in HOSTILE), ("a cycle", "train"), ("a cycle", "config")],
)
def test_a_hostile_config_is_refused(name, command, tmp_path, capsys):
    path = Path(write_config(tmp_path))
    more = HOSTILE[name]
    if more.startswith("{"):
        more = "extra: " + more.replace("${", "${extra.").replace("extra.oc.select:", "oc.select:")
        more = more.replace("oc.select:", "oc.select:extra.")
    path.write_text(path.read_text() + more + "\n")
    assert main([command, str(path)]) == 2
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert str(path) in errors
    assert not (tmp_path / "run").exists()


def test_each_value_is_resolved_once(tmp_path):
    config = load_config(doubling(18))
    assert config["a0"] == "x" * 2**18
    assert len(config["a0"]) < MAX_EXPANDED_CHARACTERS


def test_a_cycle_is_named(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_config({"a": "${b}", "b": "${a}", "c": "${no_such}", "d": "${c}"})
    assert [problem.path for problem in caught.value.problems] == [("a",), ("b",), ("c",), ("d",)]


def test_references_to_references_keep_their_types():
    config = load_config(
        {
            "text": "\\${kept}",
            "a": "${b}",
            "b": {"x": "${c}", "t": "${text}"},
            "c": 3,
            "d": "${a.x}",
            "e": "${oc.select:no_such,${d}}",
            "f": ["${a}", "${.0}"],
        }
    )
    inner = {"x": 3, "t": "${kept}"}
    assert (config["a"], config["d"], config["e"], config["f"]) == (inner, 3, 3, [inner, inner])
