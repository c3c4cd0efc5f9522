from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.config.yaml_marks import Dumper, parse_yaml
from hookline.errors import ConfigError
from tests.problems import raises_problem


def read(text: str) -> Any:
    node = parse_yaml(text, "c.yaml")
    return None if node is None else node.plain()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1E5", 1e5),
        ("-2.5e+3", -2500.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 17),
        ("-3", -3),
        (".inf", float("inf")),
        ("-.inf", float("-inf")),
        ("true", True),
        ("no", False),
        ("~", None),
        ("null", None),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1e-3x", "1e-3x"),
        ("'1e-3'", "1e-3"),
        ("=", "="),
        ('"\\ud83d\\ude00"', "😀"),
    ],
)
def test_a_scalar_means_what_its_writer_expects(text: str, value: Any) -> None:
    found = read(f"key: {text}")["key"]
    assert (found, type(found)) == (value, type(value))


def test_each_value_knows_the_line_of_its_key() -> None:
    root = parse_yaml("a: 1\nb:\n  c:\n    - x\n    - y: 2\n", "c.yaml")
    assert root is not None
    lines = {path: node.location for path, node in root.walk() if path}
    assert lines == {
        ("a",): ("c.yaml", 1),
        ("b",): ("c.yaml", 2),
        ("b", "c"): ("c.yaml", 3),
        ("b", "c", 0): ("c.yaml", 4),
        ("b", "c", 1): ("c.yaml", 5),
        ("b", "c", 1, "y"): ("c.yaml", 5),
    }


def test_aliases_and_merge_keys_work() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 9}\nd: *a\n"
    assert read(text) == {
        "a": {"x": 1, "y": 2},
        "b": {"y": 3, "z": 4},
        "c": {"y": 2, "z": 4, "x": 9},
        "d": {"x": 1, "y": 2},
    }


@pytest.mark.parametrize("bomb", ["[{0}]", "{{<<: [{0}]}}"])
def test_an_alias_bomb_is_refused_before_it_grows(bomb: str) -> None:
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{n}: &a{n} {bomb.format(', '.join([f'*a{n - 1}'] * 9))}" for n in range(1, 30)]
    with pytest.raises(ConfigError, match="aliases") as caught:
        read("\n".join(lines))
    assert (caught.value.file, caught.value.line is None) == ("c.yaml", False)


def test_keys_may_be_whole_numbers() -> None:
    assert read("names: {0: cat, 1: dog}") == {"names": {0: "cat", 1: "dog"}}


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system [echo]",
        "!!python/name:os.system",
        "!x 1",
        "!!binary aGk=",
        "!!timestamp 2024-01-01",
    ],
)
def test_no_tag_is_followed(tag: str) -> None:
    with raises_problem(file="c.yaml", line=2) as caught:
        read(f"a: 1\nb: {tag}")
    assert caught.value.value.startswith("!")


@pytest.mark.parametrize(
    "text", ["a:\n  b: 1\n   c: 2\n", "a:\n  b:1\n  c: 2\n", "a:\n  - b: 1\n   c: 2\n"]
)
def test_wrong_indentation_is_reported_in_plain_words(text: str) -> None:
    with pytest.raises(ConfigError, match="indentation") as caught:
        read(text)
    assert (caught.value.file, caught.value.line) == ("c.yaml", 3)


TRICKY = "aé😀nul~tru 0123456789.eE+-_:#'\"{}[],&*!|>%@`?\\\n\t="
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(TRICKY, max_size=10)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc_1:-", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text("abcxyz_", min_size=1), values, max_size=4))
def test_what_is_written_is_read_back_the_same(config: dict[str, Any]) -> None:
    text = yaml.dump(config, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    assert repr(read(text)) == repr(config)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_rejected_with_its_file(text: str) -> None:
    try:
        parse_yaml(text, "c.yaml")
    except ConfigError as error:
        assert error.file == "c.yaml"  # noqa: PT017
