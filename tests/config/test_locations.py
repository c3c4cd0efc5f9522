from __future__ import annotations

from pathlib import Path

import pytest

from hookline.config.locations import MAX_MESSAGE_CHARACTERS, Config, Node, SourceLocation, merge
from hookline.errors import NO_VALUE, Problem

PLACE = SourceLocation("a.yaml", 3)


def node(value: object, file: str = "a.yaml") -> Node:
    return Node.of(value, lambda path: SourceLocation(file, len(path) + 1))


def test_a_value_has_the_location_of_the_nearest_one_around_it() -> None:
    config = Config({"a": {"b": [1]}}, "c.yaml", {("a",): PLACE})
    assert config.location(("a", "b", 0)) == PLACE
    assert config.location(("x",)) == SourceLocation("c.yaml", 1)
    assert Config({}).location(("x",)) == SourceLocation(None, None)


def test_a_value_that_does_not_exist_is_none() -> None:
    config = Config({"a": {"b": [1]}})
    assert config.at(("a", "b", 0)) == 1
    for path in (("x",), ("a", "b", 7), ("a", "b", 0, "c"), ("a", "b", "c")):
        assert config.at(path) is None


def test_a_problem_is_located_shortened_and_masked() -> None:
    config = Config({}, "c.yaml", {("a",): PLACE})
    found = config.locate(Problem("x" * (MAX_MESSAGE_CHARACTERS + 1), ("a", "b"), value=3))
    assert (found.file, found.line, found.value) == ("a.yaml", 3, 3)
    assert len(found.message) == MAX_MESSAGE_CHARACTERS + 1
    assert found.message.endswith("…")
    exact = config.locate(Problem("x" * MAX_MESSAGE_CHARACTERS, ("a",)))
    assert exact.message == "x" * MAX_MESSAGE_CHARACTERS
    assert config.locate(Problem("no", ("api_key",), value="hunter22")).value is NO_VALUE


def test_nodes_keep_values_and_their_places() -> None:
    tree = node({"a": (1, {"b": Path("c")}), "d": {}})
    assert tree.plain() == {"a": [1, {"b": "c"}], "d": {}}
    leaves = {path: (leaf.value, leaf.location.line) for path, leaf in tree.leaves()}
    assert leaves == {("a", 0): (1, 3), ("a", 1, "b"): ("c", 4)}
    paths = [path for path, _ in tree.walk()]
    assert paths == [(), ("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("d",)]


def test_only_text_is_returned_as_text() -> None:
    assert node({"type": "cnn"}).text("type") == "cnn"
    assert node({"type": 3}).text("type") is None
    assert node({}).text("type") is None
    assert node("cnn").text("type") is None


def test_an_error_has_the_place_of_its_node() -> None:
    problem = Node(1, PLACE).error("wrong", ("a",), parameter="b").problems[0]
    assert (problem.file, problem.line, problem.path, problem.parameter) == (
        "a.yaml",
        3,
        ("a",),
        "b",
    )


@pytest.mark.parametrize(
    ("base", "child", "merged"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
        ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"m": {"type": "a", "x": 1}}, {"m": {"type": "b"}}, {"m": {"type": "b"}}),
        ({"m": {"type": "a", "x": 1}}, {"m": {"type": "a"}}, {"m": {"type": "a", "x": 1}}),
        ({"m": {"x": 1}}, {"m": {"type": "b"}}, {"m": {"x": 1, "type": "b"}}),
        ({"l": {"policy": "a", "x": 1}}, {"l": {"policy": "b"}}, {"l": {"policy": "b"}}),
        ({"l": {"policy": "a", "x": 1}}, {"l": {"x": 2}}, {"l": {"policy": "a", "x": 2}}),
    ],
)
def test_a_child_changes_keys_and_replaces_another_type(base, child, merged) -> None:
    both = merge(node(base, "base.yaml"), node(child, "child.yaml"))
    assert both.plain() == merged
    assert both.location.file == "child.yaml"
