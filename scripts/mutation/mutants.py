"""Small changes of a source file, made with the operators of mutmut.

Left out: type annotations, decorators, docstrings, texts (string literals with a space), the
messages of `raise`, `assert`, warnings and log calls, `__repr__`, `__all__`, `if TYPE_CHECKING`,
and `zip`'s `strict`.
"""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_assignment, operator_string

MESSAGE_METHODS = {
    "debug",
    "info",
    "warning",
    "error",
    "exception",
    "critical",
    "warn",
    "warn_once",
}
# Calls that are not changed, and neither are their arguments.
UNCHANGED_CALLS = {"len", "isinstance", "TypeVar", "ParamSpec"}
# Calls whose list of arguments is not changed, although each argument is.
UNCHANGED_ARGUMENTS = {"cast", "zip"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: The file, relative to the root of the repository.
        index: The number of the change among those of the file.
        line: The line of the change.
        scope: The first and last line of the code whose tests can notice the change.
        change: The changed lines, as `- before` and `+ after`.
    """

    path: str
    index: int
    line: int
    scope: tuple[int, int]
    change: str

    @property
    def key(self) -> str:
        return f"{self.path}#{self.index}"


@dataclass(frozen=True)
class Change:
    """A node of a syntax tree and its replacement."""

    old: cst.CSTNode
    new: cst.CSTNode
    line: int
    scope: tuple[int, int]


class MutatedFile:
    """A source file and all its possible changes."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        wrapper = MetadataWrapper(cst.parse_module(source))
        finder = ChangeFinder()
        wrapper.visit(finder)
        self.module = wrapper.module
        self.changes = finder.changes

    def __len__(self) -> int:
        return len(self.changes)

    def text(self, index: int) -> str:
        """Return the source with one change."""
        change = self.changes[index]
        changed = self.module.deep_replace(change.old, change.new)
        assert isinstance(changed, cst.Module)
        return changed.code

    def mutant(self, index: int) -> Mutant | None:
        """Return a mutant, or None if the change leaves the code equal or makes it invalid."""
        text = self.text(index)
        try:
            if ast.dump(ast.parse(text)) == ast.dump(ast.parse(self.source)):
                return None
        except SyntaxError:
            return None
        change = self.changes[index]
        return Mutant(self.path, index, change.line, change.scope, describe(self.source, text))


def describe(before: str, after: str) -> str:
    """Return the lines that differ."""
    lines = []
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        if line.startswith(("- ", "+ ")):
            lines.append(f"{line[0]} {line[2:].strip()}")
    return "\n".join(lines)


class ChangeFinder(cst.CSTVisitor):
    """Collects the changes of a module, with the code that each belongs to."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Change] = []
        self._enclosing: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if is_left_out(node):
            return False
        if isinstance(node, cst.BaseStatement | cst.Module):
            self._enclosing.append(node)
        for replacement in replacements(node):
            position = self.get_metadata(PositionProvider, node, None)
            if position is not None:
                line = position.start.line
                self.changes.append(Change(node, replacement, line, self._scope(line)))
        return True

    def on_leave(self, node: cst.CSTNode) -> None:
        if self._enclosing and self._enclosing[-1] is node:
            self._enclosing.pop()

    def _scope(self, line: int) -> tuple[int, int]:
        """Return the lines whose execution shows that a test reaches the change.

        Inside a function they are the lines of the statement. Other code runs once, at import, in
        the test that comes first. For it they are the lines of the function whose default value it
        is, of the class, or of the module.
        """
        functions = [node for node in self._enclosing if isinstance(node, cst.FunctionDef)]
        if functions and line >= self._body_start(functions[-1]):
            return self._statement_lines(self._enclosing[-1])
        if functions:
            return self._body_start(functions[-1]), self._lines(functions[-1])[1]
        for node in reversed(self._enclosing):
            if isinstance(node, cst.ClassDef | cst.Module):
                return self._lines(node)
        raise AssertionError("every node is inside a module")

    def _statement_lines(self, statement: cst.CSTNode) -> tuple[int, int]:
        """Return the lines of a simple statement, or those of the header of a compound one."""
        first, last = self._lines(statement)
        if isinstance(statement, cst.BaseCompoundStatement) and not isinstance(
            statement, cst.Match
        ):
            return first, max(first, self._body_start(statement) - 1)
        return first, last

    def _body_start(self, node: cst.BaseCompoundStatement) -> int:
        return self._lines(node.body.body[0])[0]

    def _lines(self, node: cst.CSTNode) -> tuple[int, int]:
        position = self.get_metadata(PositionProvider, node)
        return position.start.line, position.end.line


def replacements(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    """Yield the changed versions of a node.

    A string is changed in one of three ways only. An assigned False or None is not replaced by the
    other: code rarely distinguishes them.
    """
    if called_name(node) in UNCHANGED_ARGUMENTS:
        return
    for kind, operator in mutation_operators:
        if not isinstance(node, kind):
            continue
        if operator is operator_assignment and is_false(node.value):
            continue
        limit = 1 if operator is operator_string else None
        yield from itertools.islice(operator(node), limit)


def is_left_out(node: cst.CSTNode) -> bool:
    """Return whether a node is not changed, nor anything inside it."""
    match node:
        case cst.Annotation() | cst.Decorator() | cst.Raise() | cst.Import() | cst.ImportFrom():
            return True
        case cst.Expr(value=cst.BaseString()) | cst.Assert():
            return True
        case cst.SimpleString() | cst.ConcatenatedString():
            return " " in str(node.evaluated_value)
        case cst.FunctionDef(name=cst.Name(value="__repr__")):
            return True
        case cst.If(test=cst.Name(value="TYPE_CHECKING")):
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="__all__"))]):
            return True
        case cst.Arg(keyword=cst.Name(value="strict")):
            return True
        case cst.Param(default=cst.BaseExpression() as default):
            return not isinstance(default, cst.Name | cst.BaseNumber | cst.BaseString)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))):
            return method in MESSAGE_METHODS
        case cst.Call():
            return called_name(node) in UNCHANGED_CALLS
    return False


def is_false(value: cst.BaseExpression | None) -> bool:
    return isinstance(value, cst.Name) and value.value in ("False", "None")


def called_name(node: cst.CSTNode) -> str:
    """Return the name of a called function, or an empty text."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return node.func.value
    return ""
