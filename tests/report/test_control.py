"""Requests to a running training."""

from __future__ import annotations

import os
import queue

from hookline.report.control import RequestListener, send_request, take_requests
from hookline.report.names import CONTROL
from tests.problems import raises_problem
from tests.waiting import LIMIT_S


def test_a_request_is_taken_once(tmp_path):
    assert take_requests(tmp_path) == []
    send_request(tmp_path, "stop")
    send_request(tmp_path, "save")
    send_request(tmp_path, "save")
    assert take_requests(tmp_path) == ["save", "stop"]
    assert take_requests(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_other_requests_are_rejected_and_other_contents_ignored(tmp_path):
    with raises_problem(parameter="action", value="rm -rf"):
        send_request(tmp_path, "rm -rf")
    for content in ("", "{}", '["rm"]', "[", '"stop"', "[[]]", "\x00"):
        (tmp_path / CONTROL).write_text(content)
        assert take_requests(tmp_path) == []


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text('["stop"]')
    os.symlink(tmp_path / "secret", tmp_path / CONTROL)
    assert take_requests(tmp_path) == []
    assert (tmp_path / "secret").exists()


def test_a_listener_discards_requests_to_an_earlier_run(tmp_path):
    send_request(tmp_path, "stop")
    listener = RequestListener(tmp_path, print)
    listener.start()
    listener.stop()
    assert take_requests(tmp_path) == []


def test_a_listener_reports_new_requests(tmp_path):
    heard = queue.Queue()
    listener = RequestListener(tmp_path, heard.put, period=0.01)
    listener.start()
    for action in ("save", "stop"):
        send_request(tmp_path, action)
        assert heard.get(timeout=LIMIT_S) == action
    listener.stop()
