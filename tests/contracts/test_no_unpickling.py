"""No module of the package unpickles freely."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookline

ROOT = Path(hookline.__file__).parent
MODULES = {"pickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
READERS = {"load", "loads", "Unpickler", "open"}
CLOSED = Path("checkpoint/legacy_shards.py")  # resolves a closed list, see test_legacy_shards.py
REQUIRED = {("torch", "load"): ("weights_only", True), ("np", "load"): ("allow_pickle", False)}


def unsafe_calls(source: str) -> Iterator[int]:
    """Yield the lines that unpickle freely, or could be made to."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            unsafe = node.module in MODULES and bool(names & READERS)
        elif isinstance(node, ast.Attribute):
            unsafe = _name(node.value) in MODULES and node.attr in READERS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            required = REQUIRED.get((_name(node.func.value), node.func.attr))
            unsafe = required is not None and required not in list(_constants(node))
        else:
            unsafe = False
        if unsafe:
            yield node.lineno


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _constants(call: ast.Call) -> Iterator[tuple[str | None, object]]:
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Constant):
            yield keyword.arg, keyword.value.value


def test_no_module_unpickles_freely() -> None:
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT) == CLOSED:
            continue
        for line in unsafe_calls(path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(ROOT)}:{line}")
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "pickle.load(file)",
        "class Reader(pickle.Unpickler): ...",
        "from pickle import loads",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "torch.load(path, weights_only=flag)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_an_unsafe_call_is_found(source: str) -> None:
    assert list(unsafe_calls(source)) == [1]


@pytest.mark.parametrize(
    "source",
    ["torch.load(path, weights_only=True)", "np.load(p, allow_pickle=False)", "json.load(file)"],
)
def test_a_safe_call_is_not(source: str) -> None:
    assert list(unsafe_calls(source)) == []
