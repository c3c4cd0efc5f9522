"""Hostile configs: each is refused with its place, soon and without a traceback."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.main import main
from hookline.config import load_config
from hookline.config.resolve import MAX_EXPANDED_CHARACTERS
from hookline.errors import ConfigError
from tests.adversary.hostile_configs import HOSTILE, MARKER, Hostile
from tests.cli.helpers import write_config

COMMANDS = ("config", "plan", "dry-run", "train")
MAX_CALLS = 3_000_000  # of functions in one command; the small config takes about 100,000
PROCESSES = ("os.exec", "os.fork", "os.posix_spawn", "os.system", "subprocess.Popen", "pty.spawn")


def doubling(levels: int) -> dict[str, str]:
    """Return values of which each refers to the next one twice."""
    values = {f"a{level}": f"${{a{level + 1}}}${{a{level + 1}}}" for level in range(levels)}
    return {**values, f"a{levels}": "x"}


EXPANDING = {
    "doubling text": json.dumps(doubling(30)),
    "doubling lists": json.dumps(
        {**{f"a{i}": [f"${{a{i + 1}}}", f"${{a{i + 1}}}"] for i in range(30)}, "a30": ["x"]}
    ),
    "doubling through a resolver": json.dumps(
        {f"a{i}": f"${{oc.select:a{i + 1}}}${{oc.select:a{i + 1}}}" for i in range(30)}
    ),
    "nested interpolations": "a: '" + "${" * 199 + "x" + "}" * 199 + "'",
    "nested and open": "a: '" + "${" * 299 + "'",
    "nested brackets": "a: '${oc.decode:" + "[" * 2000 + "]" * 2000 + "}'",
    "many interpolations": "x: 1\na: '" + "${x}" * 10_000 + "'",
    "a cycle": "a: ${b}\nb: ${c}\nc: ${a}",
    "deep yaml": "a: " + "[" * 5000 + "]" * 5000,
    "aliases": "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*{'a' if not i else f'b{i - 1}'}, "
    f"*{'a' if not i else f'b{i - 1}'}]\n" for i in range(30)),
    "a tag": "a: !!python/object/apply:os.system [true]",
    "two keys": "a: 1\na: 2",
    "no text": "a: \x00",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "command"),
    [*((name, "plan") for name in EXPANDING), ("a cycle", "train"), ("a cycle", "config")],
)
def test_a_config_that_expands_without_end_is_refused(name, command, tmp_path, capsys):
    path = Path(write_config(tmp_path))
    more = EXPANDING[name]
    if more.startswith("{"):
        more = "extra: " + more.replace("${", "${extra.").replace("extra.oc.select:", "oc.select:")
        more = more.replace("oc.select:", "oc.select:extra.")
    path.write_text(path.read_text() + more + "\n")
    assert main([command, str(path)]) == 2
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert str(path) in errors
    assert not (tmp_path / "run").exists()


def test_each_value_is_resolved_once(tmp_path):
    config = load_config(doubling(18))
    assert config["a0"] == "x" * 2**18
    assert len(config["a0"]) < MAX_EXPANDED_CHARACTERS


def test_a_cycle_is_named(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_config({"a": "${b}", "b": "${a}", "c": "${no_such}", "d": "${c}"})
    assert [problem.path for problem in caught.value.problems] == [("a",), ("b",), ("c",), ("d",)]


def test_references_to_references_keep_their_types():
    config = load_config(
        {
            "text": "\\${kept}",
            "a": "${b}",
            "b": {"x": "${c}", "t": "${text}"},
            "c": 3,
            "d": "${a.x}",
            "e": "${oc.select:no_such,${d}}",
            "f": ["${a}", "${.0}"],
        }
    )
    inner = {"x": 3, "t": "${kept}"}
    assert (config["a"], config["d"], config["e"], config["f"]) == (inner, 3, 3, [inner, inner])


class Watch:
    """Notes what a command does, by the audit events of Python and the calls of functions."""

    def __init__(self) -> None:
        self.folder: Path | None = None  # nothing is noted without a folder
        self.calls = 0
        self.found: list[str] = []

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in PROCESSES:
            self.found.append(f"{event} {arguments}")
        elif event == "open" and isinstance(arguments[0], (str, os.PathLike)):
            path, flags = Path(arguments[0]), arguments[2]
            is_write = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            harmless = (self.folder, Path(os.devnull))
            is_compiled = "__pycache__" in path.parts
            if is_write and not is_compiled and not any(map(path.is_relative_to, harmless)):
                self.found.append(f"writes {path}")

    def count(self, frame: Any, event: str, argument: Any) -> None:
        self.calls += event == "call"
        if self.calls > MAX_CALLS:
            sys.setprofile(None)
            raise AssertionError(f"more than {MAX_CALLS:,} calls")


WATCH = Watch()
sys.addaudithook(WATCH.audit)  # It cannot be removed.


@contextmanager
def watched(folder: Path, count: bool) -> Iterator[Watch]:
    WATCH.folder, WATCH.calls, WATCH.found = folder, 0, []
    if count:
        sys.setprofile(WATCH.count)
    try:
        yield WATCH
    finally:
        sys.setprofile(None)
        WATCH.folder = None


@pytest.fixture(scope="module")
def _imported(tmp_path_factory) -> None:
    """Import everything that commands import on use, so that its calls are not counted."""
    main(["config", str(Hostile().write(tmp_path_factory.mktemp("small")))])


@pytest.mark.usefixtures("_imported")
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_config_is_an_error_that_names_its_place(
    hostile: Hostile, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("HOSTILE_TOKEN", "value-of-the-token")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = hostile.write(tmp_path)
    before = files_in(tmp_path)
    for command in COMMANDS:
        if hostile.late and command != "train":
            continue
        with watched(tmp_path, count=command == "config") as watch:
            code = main([command, str(path)])
        output = capsys.readouterr()
        shown = output.out + output.err
        assert code == 2, command
        assert "Traceback" not in shown
        place = r"\w+\.(yaml|json|toml):\d+: |[\w./]+: "
        assert re.search(place, output.err or output.out)
        assert all(character.isprintable() or character == "\n" for character in shown)
        assert "value-of-the-token" not in shown
        assert not watch.found
        assert not (tmp_path / MARKER).exists()
        if not hostile.late:
            assert files_in(tmp_path) == before


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_config_that_hostile_ones_change_works(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([command, str(Hostile().write(tmp_path))]) == 0
