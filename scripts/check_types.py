"""Check the types of the documentation's snippets and of the examples, with mypy and pyright.

    python scripts/check_types.py

The Python blocks of a page become one module. Planted mistakes are checked along with them: exits
with 1 if a checker finds an error in the documentation, or misses one of the planted mistakes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: (\S+)\n")
PLANTED = "planted.py"
MISTAKES = """\
from torch import nn

from hookline import Runner, launch, make_loader
from hookline.hooks import EMAHook

Runner(nn.Linear(1, 1), trian_loader=[])  # mistake: an unknown parameter
Runner(nn.Linear(1, 1), max_epochs="three")  # mistake: a wrong type
EMAHook(momentun=0.9)  # mistake: an unknown parameter of a hook
EMAHook(momentum="high")  # mistake: a wrong type of a hook's parameter
Runner(nn.Linear(1, 1)).trian()  # mistake: an unknown method
Runner(nn.Linear(1, 1)).train(max_epoch=3)  # mistake: an unknown parameter of a method
make_loader([1, 2], batch_size="8")  # mistake: a wrong type of a loader's parameter
launch(nproc=2)  # mistake: a missing parameter
"""
# Blocks of a page may define a name again, and leave out annotations.
MYPY_OPTIONS = [
    "--config-file=",
    "--ignore-missing-imports",
    "--follow-imports=silent",
    "--check-untyped-defs",
    "--disable-error-code=no-redef",
    "--allow-redefinition",
    "--local-partial-types",
    "--explicit-package-bases",
    "--no-error-summary",
    "--no-pretty",
    "--show-absolute-path",
]
PYRIGHT_SETTINGS = {
    "typeCheckingMode": "basic",
    "reportMissingImports": "none",
    "reportMissingModuleSource": "none",
    "reportRedeclaration": "none",
}


class Finding(NamedTuple):
    """An error of a type checker."""

    file: Path
    line: int
    message: str


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_modules(folder)
        failed = report("mypy", list(run_mypy(folder)), folder)
        failed += report("pyright", list(run_pyright(folder)), folder)
    return 1 if failed else 0


def write_modules(folder: Path) -> None:
    """Write the documentation's snippets, the examples and the planted mistakes as modules."""
    (folder / PLANTED).write_text(MISTAKES, encoding="utf-8")
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        if blocks:
            target = folder / re.sub(r"\W", "_", page.relative_to(ROOT).as_posix())
            target.mkdir()
            write_page(blocks, target)
    for example in sorted((ROOT / "examples").rglob("*.py")):
        target = folder / "examples" / example.relative_to(ROOT / "examples")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(example.read_text(encoding="utf-8"), encoding="utf-8")


def write_page(blocks: list[str], target: Path) -> None:
    """Write the blocks of a page: those that name a file to that file, the others to one."""
    shared = []
    for text in blocks:
        file = FILE.match(text)
        if file is None:
            shared.append(text)
        else:
            path = target / file[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    (target / "snippets.py").write_text("\n".join(shared), encoding="utf-8")


def run_mypy(folder: Path) -> Iterator[Finding]:
    command = [sys.executable, "-m", "mypy", *MYPY_OPTIONS, "."]
    command += [f"--cache-dir={ROOT / '.mypy_cache' / 'docs'}"]
    output = run(command, folder)
    for line in output.splitlines():
        match = re.match(r"(.+?):(\d+)(?::\d+)?: error: (.*)", line)
        if match:
            yield Finding(Path(match[1]), int(match[2]), match[3])
        elif "error:" in line:
            raise SystemExit(f"mypy failed: {line}")


def run_pyright(folder: Path) -> Iterator[Finding]:
    settings = {**PYRIGHT_SETTINGS, "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    output = run(command, folder)
    try:
        diagnostics = json.loads(output)["generalDiagnostics"]
    except (ValueError, KeyError):
        raise SystemExit(f"pyright failed: {output}") from None
    for each in diagnostics:
        if each["severity"] == "error":
            line = each["range"]["start"]["line"] + 1
            yield Finding(Path(each["file"]), line, each["message"])


def run(command: list[str], folder: Path) -> str:
    """Return the output of a checker, which finds the package in this repository."""
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return result.stdout or result.stderr


def report(checker: str, findings: list[Finding], folder: Path) -> int:
    """Print the errors and the mistakes that were missed; return 1 if there are any."""
    planted = {number for number, line in enumerate(MISTAKES.splitlines(), 1) if "mistake" in line}
    found = {each.line for each in findings if each.file.name == PLANTED}
    errors = [each for each in findings if each.file.name != PLANTED]
    for each in errors:
        print(f"{checker}: {each.file.relative_to(folder)}:{each.line}: {each.message}")
    for line in sorted(planted - found):
        print(f"{checker}: missed a planted mistake: {MISTAKES.splitlines()[line - 1]}")
    missed = len(planted - found)
    print(
        f"{checker}: {len(errors)} errors, {len(planted) - missed} of {len(planted)} mistakes found"
    )
    return 1 if errors or missed else 0


if __name__ == "__main__":
    sys.exit(main())
