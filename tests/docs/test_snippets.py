"""Every snippet in the documents runs.

Blocks of a page share a directory and, if they are Python, a namespace. ```python is executed; ```python and ```yaml that begin
with `# file: NAME` are written there instead; any other ```yaml is a part of a config and is checked as that; ```toml is parsed;
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

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "README.zh.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "hooks").glob("*.md")),
    *sorted((ROOT / "docs" / "zh").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: (\S+)\n")
MINIMAL = {"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_all_snippets_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = types.ModuleType("snippet")
    monkeypatch.setitem(sys.modules, "snippet", module)  # where dataclasses look their module up
    before = set(sys.modules)
    try:
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            run_block(language, text, page, vars(module))
    finally:
        for name in set(sys.modules) - before:  # files of a page, which another page may have under the same name
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
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
    """A part of a config is right if it is in a config that has all the rest."""
    Path("part.yaml").write_text(text, encoding="utf-8")
    given = {**MINIMAL, **load_config("part.yaml")}
    given["hooks"] = [hook for hook in given.get("hooks", []) if is_here(hook)]
    assert [str(problem) for problem in validate(given)] == [], text


def is_here(hook: str | dict) -> bool:
    """Whether the package of a hook of another framework is installed; of ours, all are here."""
    package, dot, _ = (hook if isinstance(hook, str) else hook["type"]).partition(".")
    return not dot or importlib.util.find_spec(package) is not None


def test_a_part_of_a_config_with_a_mistake_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_part("hooks: [{type: EMAHook, momentum: 0.99}]")
    with pytest.raises(AssertionError, match="momentun"):
        check_part("hooks: [{type: EMAHook, momentun: 0.99}]")


def run_command(words: list[str]) -> None:
    if words[0] == "hookline":
        assert main(words[1:]) == 0, words
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words[1:])
            runpy.run_path(words[1], run_name="__main__")


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=name_of)
def test_links_hold(page):
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if "://" in path:
            continue
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{path}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    """The anchors that headings get on the site and on GitHub, and those that a page sets itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    own = set(re.findall(r'<a id="([^"]+)">', text))
    return own | {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_commands_that_begin_with_make_are_targets():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page in PAGES:
        for name in re.findall(r"(?:^|`)make ([\w-]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert name in targets, (page.name, name)
