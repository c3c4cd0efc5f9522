"""hookline/files.py: files that a run writes beside its checkpoints."""

from __future__ import annotations

import os
import stat

import pytest

from hookline.errors import HooklineError
from hookline.files import open_to_append, open_to_read, read_lines, replace_file


def test_a_line_without_an_end_gets_one_before_the_next(tmp_path):
    path = tmp_path / "below" / "log"
    for line in ("torn", "whole\n", "last\n"):
        with open_to_append(path) as file:
            file.write(line)
    assert read_lines(path) == ["torn", "whole", "last"]


def test_only_a_newline_ends_a_line(tmp_path):
    path = tmp_path / "log"
    path.write_bytes("a\rb\x0c\u2028\u0085c\n\n d".encode())
    assert read_lines(path) == ["a\rb\x0c\u2028\u0085c", "", " d"]
    path.write_bytes(b"")
    assert read_lines(path) == []


def test_a_replaced_file_has_the_new_content_and_no_other_reader(tmp_path):
    path = tmp_path / "costs.json"
    path.write_text("a longer text")
    (tmp_path / ".costs.json.partial").write_text("left by a killed process")
    replace_file(path, "new", durable=True)
    assert path.read_text() == "new"
    assert not stat.S_IMODE(path.stat().st_mode) & 0o007
    assert [each.name for each in tmp_path.iterdir()] == ["costs.json"]


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "pipe"])
def test_only_regular_files_are_opened(kind, tmp_path):
    path = tmp_path / "log"
    target = tmp_path / "target"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
        if kind == "link":
            target.write_text("x")
    for function in (open_to_append, open_to_read):
        with pytest.raises(HooklineError) as caught:
            function(path)
        assert caught.value.file == str(path)
    assert target.exists() == (kind == "link")
