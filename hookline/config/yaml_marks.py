"""YAML read safely: plain values only, each with its line."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hookline.config.places import Node, Place, error_at

MAX_REPEATED = 10_000  # nodes that come from following aliases; a handful of lines can stand for billions
MAX_DEPTH = 100
_TAG = "tag:yaml.org,2002:"


def parse_yaml(text: str, file: str, *, lines: bool = True) -> Node | None:
    """The document as nodes; None if there is none. `lines=False` is for text that is no file."""
    try:
        root = yaml.compose(text, _Loader)
        return None if root is None else _Walker(file, lines).node(root, root, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise error_at((file, mark.line + 1 if lines and mark else None), _syntax_message(error, lines)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if lines else None
        raise error_at((file, line), f"the character U+{error.character:04X} is not allowed here") from error


class _Loader(yaml.SafeLoader):
    """Scalars as in YAML 1.2 (`1e-3` is a number, `12:30` is none); a date is text."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"nested more than {MAX_DEPTH} levels deep", problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class Dumper(yaml.SafeDumper):
    """Writes what `parse_yaml` reads back as the same values."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_INT = re.compile(r"^[-+]?(?:0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*)$")
_FLOAT = re.compile(r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$")
_REPLACED = {_TAG + kind for kind in ("int", "float", "timestamp", "value")}
for _class in (_Loader, Dumper):
    _class.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _class.add_implicit_resolver(_TAG + "int", _INT, list("-+0123456789"))  # type: ignore[no-untyped-call]
    _class.add_implicit_resolver(_TAG + "float", _FLOAT, list("-+.0123456789"))  # type: ignore[no-untyped-call]
Dumper.add_multi_representer(object, lambda dumper, value: dumper.represent_str(repr(value)))


class _Walker:
    """Turns the nodes of PyYAML into ours, without running any of its constructors."""

    def __init__(self, file: str, lines: bool) -> None:
        self.file, self.lines = file, lines
        self.seen: set[int] = set()
        self.repeated = 0

    def node(self, node: yaml.Node, key: yaml.Node, depth: int) -> Node:
        place = self.place(key)
        self.repeated += id(node) in self.seen
        self.seen.add(id(node))
        if self.repeated > MAX_REPEATED:
            raise error_at(place, f"the aliases here stand for more than {MAX_REPEATED} values")
        if depth > MAX_DEPTH:
            raise error_at(place, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return Node(self.mapping(node, depth + 1), place)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return Node([self.node(item, item, depth + 1) for item in node.value], place)
        if isinstance(node, yaml.ScalarNode):
            return Node(self.scalar(node), place)
        raise error_at(self.place(node), f"the tag {_shown(node.tag)!r} is not allowed: a config holds plain values only")

    def mapping(self, node: yaml.MappingNode, depth: int) -> dict[Any, Node]:
        own: dict[Any, Node] = {}
        merged: dict[Any, Node] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                for item in self.merged(value_node, depth):
                    merged = {**item, **merged}
                continue
            key = self.key(key_node)
            if key in own:
                raise error_at(self.place(key_node), f"duplicate key {key!r}, first on line {own[key].place[1]}")
            own[key] = self.node(value_node, key_node, depth)
        return {**merged, **own}

    def merged(self, node: yaml.Node, depth: int) -> list[dict[Any, Node]]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [self.node(part, part, depth).value for part in parts]
        if not all(isinstance(value, dict) for value in values):
            raise error_at(self.place(node), "'<<' takes a mapping or a list of mappings")
        return values

    def key(self, node: yaml.Node) -> str | int:
        key = self.scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            written = f", got {node.value}" if isinstance(node, yaml.ScalarNode) else ""
            raise error_at(self.place(node), f"a key must be text{written}; quote it if it is meant as text")
        return key

    def scalar(self, node: yaml.ScalarNode) -> Any:
        kind, text = node.tag.removeprefix(_TAG), node.value
        try:
            if kind == "int":
                return _whole_number(text)
            if kind == "float":
                return float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
            if kind == "bool":
                return {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}[text.lower()]
            if kind == "str":
                return text.encode("utf-16", "surrogatepass").decode("utf-16")  # a pair of \u escapes in JSON is one character
        except (ValueError, KeyError) as error:
            raise error_at(self.place(node), f"{text[:40]!r} is not of the type {_shown(node.tag)!r}") from error
        if kind == "null":
            return None
        raise error_at(self.place(node), f"the tag {_shown(node.tag)!r} is not allowed: a config holds plain values only")

    def place(self, node: yaml.Node) -> Place:
        return self.file, node.start_mark.line + 1 if self.lines else None


def _whole_number(text: str) -> int:
    digits = text.replace("_", "")
    return int(digits, 0) if digits.lstrip("+-")[1:2].isalpha() else int(digits)


def _shown(tag: str) -> str:
    return tag.replace(_TAG, "!!")


def _syntax_message(error: yaml.MarkedYAMLError, lines: bool) -> str:
    message = str(error.problem or error.context or "cannot be read as YAML")
    if "\\t" in message:
        return "a tab where only spaces are allowed; indent with spaces"
    if message == "mapping values are not allowed here":
        return "no key can stand here: is this line, or the one before it, indented as it should be, and is there a space after each ':'?"
    start = error.context_mark
    if message.startswith("expected <block end>") and lines and start is not None:
        return f"this line is not indented like those that it belongs to, which begin on line {start.line + 1}"
    if not lines or not error.context or start is None or start is error.problem_mark:
        return message
    return f"{message} ({error.context} that begins on line {start.line + 1})"
