"""The source of the package: nothing in it evaluates text or starts a shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "hookline"
FORBIDDEN = ("eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads")


def dangerous_calls(source: str) -> Iterator[str]:
    """Yield the calls that evaluate text, unpickle freely or start a shell."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in FORBIDDEN:
            yield name
        for keyword in node.keywords:
            is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg == "shell" and not is_false:
                yield "shell"
            if keyword.arg == "weights_only" and is_false:
                yield "weights_only"


def test_the_package_evaluates_no_text_and_starts_no_shell() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for name in dangerous_calls(path.read_text(encoding="utf-8")):
            found.add((path.relative_to(PACKAGE).as_posix(), name))
    assert found == set()


def test_dangerous_calls_are_found() -> None:
    source = "os.system(x); run(x, shell=True); eval(x); torch.load(x, weights_only=False)"
    assert [*dangerous_calls(source)] == ["os.system", "shell", "eval", "weights_only"]
