"""Read YAML safely: plain values only, each with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from hookline.config.locations import Node, SourceLocation, error_at
from hookline.errors import ConfigError

MAX_REPEATED = 10_000  # nodes from aliases; a few lines of aliases can expand to billions
MAX_DEPTH = 100  # levels of nesting
MAX_INTEGER_BITS = 1024  # the range of a float; Python cannot print much larger numbers
_TAG = "tag:yaml.org,2002:"


def parse_yaml(text: str, file: str, *, lines: bool = True) -> Node | None:
    """Return the document as nodes, or None if it is empty.

    Args:
        text: The YAML text.
        file: Its name for error messages.
        lines: Whether to keep line numbers; False for text that is not in a file.
    """
    try:
        root = yaml.compose(text, _Loader)
        if root is None:
            return None
        return _Walker(file, lines).node(root, root, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if lines and mark else None
        message = _syntax_message(error, lines)
        raise error_at(SourceLocation(file, line), message) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if lines else None
        message = f"the character U+{error.character:04X} is not allowed here"
        raise error_at(SourceLocation(file, line), message) from error


class _Loader(yaml.SafeLoader):
    """A loader with the scalars of YAML 1.2: `1e-3` is a number, `12:30` and a date are text."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            problem = f"nested more than {MAX_DEPTH} levels deep"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class Dumper(yaml.SafeDumper):
    """A dumper whose output `parse_yaml` reads back as the same values."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_INT = re.compile(r"^[-+]?(?:0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*)$")
_FLOAT = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
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
    """A converter from PyYAML's nodes to ours that runs no constructor of PyYAML."""

    def __init__(self, file: str, lines: bool) -> None:
        self.file = file
        self.lines = lines
        self.seen: set[int] = set()
        self.repeated = 0

    def node(self, node: yaml.Node, key: yaml.Node, depth: int) -> Node:
        location = self.location(key)
        self.repeated += id(node) in self.seen
        self.seen.add(id(node))
        if self.repeated > MAX_REPEATED:
            raise error_at(location, f"the aliases expand to more than {MAX_REPEATED} values")
        if depth > MAX_DEPTH:
            raise error_at(location, f"nested more than {MAX_DEPTH} levels deep")
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return Node(self.mapping(node, depth + 1), location)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return Node([self.node(item, item, depth + 1) for item in node.value], location)
        if isinstance(node, yaml.ScalarNode):
            return Node(self.scalar(node), location)
        raise self.tag_error(node)

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
                message = f"duplicate key {key!r}, first on line {own[key].location.line}"
                raise error_at(self.location(key_node), message, parameter=str(key))
            own[key] = self.node(value_node, key_node, depth)
        return {**merged, **own}

    def merged(self, node: yaml.Node, depth: int) -> list[dict[Any, Node]]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [self.node(part, part, depth).value for part in parts]
        if not all(isinstance(value, dict) for value in values):
            raise error_at(self.location(node), "'<<' takes a mapping or a list of mappings")
        return values

    def key(self, node: yaml.Node) -> str | int:
        key = self.scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            written = f", got {node.value}" if isinstance(node, yaml.ScalarNode) else ""
            message = f"a key must be text{written}; quote it if it is text"
            raise error_at(self.location(node), message)
        return key

    def scalar(self, node: yaml.ScalarNode) -> Any:
        kind, text = node.tag.removeprefix(_TAG), node.value
        if kind == "null":
            return None
        if kind not in _SCALARS:
            raise self.tag_error(node)
        try:
            return _SCALARS[kind](text)
        except (ValueError, KeyError) as error:
            message = f"{text[:40]!r} is not of type {_short_tag(node.tag)!r}"
            raise error_at(self.location(node), message) from error

    def tag_error(self, node: yaml.Node) -> ConfigError:
        tag = _short_tag(node.tag)
        message = f"the tag {tag!r} is not allowed: a config holds plain values only"
        return error_at(self.location(node), message, value=tag)

    def location(self, node: yaml.Node) -> SourceLocation:
        line = node.start_mark.line + 1 if self.lines else None
        return SourceLocation(self.file, line)


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    has_base = digits.lstrip("+-")[1:2].isalpha()
    return check_integer(int(digits, 0) if has_base else int(digits))


def check_integer(value: int) -> int:
    """Return a whole number; raise ValueError if it is too large for every use."""
    if value.bit_length() > MAX_INTEGER_BITS:
        raise ValueError(f"a whole number must be below 2**{MAX_INTEGER_BITS}")
    return value


def _float(text: str) -> float:
    return float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))


def _text(text: str) -> str:
    """Join the surrogate pairs that JSON's escapes write for one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]


_BOOLEANS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_SCALARS: dict[str, Callable[[str], Any]] = {
    "int": _integer,
    "float": _float,
    "bool": _boolean,
    "str": _text,
}


def _short_tag(tag: str) -> str:
    return tag.replace(_TAG, "!!")


def _syntax_message(error: yaml.MarkedYAMLError, lines: bool) -> str:
    """Return PyYAML's message, in plainer words for the common mistakes with indentation."""
    message = str(error.problem or error.context or "cannot be read as YAML")
    if "\\t" in message:
        return "a tab is not allowed here; indent with spaces"
    if message == "mapping values are not allowed here":
        return (
            "a key is not allowed here; check the indentation of this line and the line before "
            "it, and put a space after each ':'"
        )
    start = error.context_mark
    if message.startswith("expected <block end>") and lines and start is not None:
        return (
            f"the indentation differs from that of its block, which begins on line {start.line + 1}"
        )
    if not lines or not error.context or start is None or start is error.problem_mark:
        return message
    return f"{message} ({error.context} that begins on line {start.line + 1})"
