"""Requests to a running training."""

from __future__ import annotations

import os
import time

import pytest

from hookline.report.control import Listener, ask, take
from hookline.report.names import CONTROL


def test_what_is_asked_for_is_taken_once(tmp_path):
    assert take(tmp_path) == []
    ask(tmp_path, "stop")
    ask(tmp_path, "save")
    ask(tmp_path, "save")
    assert take(tmp_path) == ["save", "stop"]
    assert take(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_other_wishes_are_refused_and_other_contents_ignored(tmp_path):
    with pytest.raises(ValueError, match="save or stop"):
        ask(tmp_path, "rm -rf")
    for content in ("", "{}", '["rm"]', "[", '"stop"', "[[]]", "\x00"):
        (tmp_path / CONTROL).write_text(content)
        assert take(tmp_path) == []


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text('["stop"]')
    os.symlink(tmp_path / "secret", tmp_path / CONTROL)
    assert take(tmp_path) == []
    assert (tmp_path / "secret").exists()


def test_a_listener_forgets_what_an_earlier_run_was_asked_and_hears_what_comes(tmp_path):
    heard: list[str] = []
    ask(tmp_path, "stop")
    listener = Listener(tmp_path, heard.append, period=0.01)
    listener.start()
    time.sleep(0.1)
    assert heard == []
    ask(tmp_path, "save")
    deadline = time.monotonic() + 10
    while not heard and time.monotonic() < deadline:
        time.sleep(0.01)
    listener.stop()
    assert heard == ["save"]
