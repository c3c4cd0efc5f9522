"""Every snippet of the documentation runs.

The blocks of a page share a directory and, if they are Python, a namespace. ```python is executed; ```python and ```yaml that begin
with `# file: NAME` are written there instead; any other ```yaml is checked as part of a config; ```toml is parsed; the
`$ hookline …` and `$ python NAME …` lines of ```console blocks are run.
"""

from __future__ import annotations

import importlib.util
import re
import runpy
import shlex
import sys
import types
from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.config import load_config, validate
from tests.docs.pages import BLOCK, DOCS, READMES, ROOT, name_of, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TRANSLATED = [READMES[1], *sorted((DOCS / "zh").glob("*.md"))]
GUIDES = [
    READMES[0],
    *sorted(DOCS.glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
# tests/compat_foreign/test_finetune.py runs it, in an environment with transformers and peft.
WITH_OTHER_PACKAGES = DOCS / "fine-tuning.md"
WITH_SNIPPETS = [
    page for page in GUIDES if BLOCK.search(read(page)) and page != WITH_OTHER_PACKAGES
]
# Their code is that of the English pages, which test_translations.py checks.
WITH_SNIPPETS += [
    pytest.param(page, marks=pytest.mark.exhaustive)
    for page in TRANSLATED
    if BLOCK.search(read(page))
]
FILE = re.compile(r"# file: (\S+)\n")
MINIMAL = {"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}


# One test for each guide: many of them train, and so xdist can distribute them. `test_hook_pages.py` has the pages of hooks.
@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=name_of)
def test_all_snippets_of_a_guide_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_page(page, tmp_path, monkeypatch)


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in a folder."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    module = types.ModuleType("snippet")
    monkeypatch.setitem(sys.modules, "snippet", module)  # dataclasses look up their module
    before = set(sys.modules)
    try:
        for language, text in BLOCK.findall(read(page)):
            run_block(language, text, page, vars(module))
    finally:
        forget_modules(folder, set(sys.modules) - before)


def forget_modules(folder: Path, names: set[str]) -> None:
    """Remove the imported files of a page: another page may have files of the same name."""
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(folder):
            del sys.modules[name]


def run_block(language: str, text: str, page: Path, namespace: dict) -> None:
    file = FILE.match(text)
    if file and language in ("python", "yaml"):
        Path(file[1]).write_text(text, encoding="utf-8")
    elif language == "python":
        exec(compile(text, page.name, "exec"), namespace)  # noqa: S102  # our own documents
    elif language == "yaml":
        check_part(text)
    elif language == "toml":
        tomllib.loads(text)
    elif language == "console":
        for line in re.findall(r"^\$ ((?:hookline|python) .*)$", text, re.MULTILINE):
            run_command(shlex.split(line, comments=True))


def check_part(text: str) -> None:
    """Check a part of a config inside a config that has everything else."""
    Path("part.yaml").write_text(text, encoding="utf-8")
    given = {**MINIMAL, **load_config("part.yaml")}
    given["hooks"] = [hook for hook in given.get("hooks", []) if is_installed(hook)]
    assert [str(problem) for problem in validate(given)] == [], text


def is_installed(hook: str | dict) -> bool:
    """Return whether the package of a hook is installed; a name without a dot is one of ours."""
    name = hook if isinstance(hook, str) else hook["type"]
    package, dot, _ = name.partition(".")
    return not dot or importlib.util.find_spec(package) is not None


def run_command(words: list[str]) -> None:
    if words[0] == "hookline":
        assert main(words[1:]) == 0, words
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words[1:])
            runpy.run_path(words[1], run_name="__main__")


def test_a_mistake_in_a_part_of_a_config_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_part("hooks: [{type: EMAHook, momentum: 0.99}]")
    with pytest.raises(AssertionError, match="momentun"):
        check_part("hooks: [{type: EMAHook, momentun: 0.99}]")
