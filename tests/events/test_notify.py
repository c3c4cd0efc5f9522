"""Messages to webhooks and commands."""

from __future__ import annotations

import json
import sys
import threading

import pytest

from hookline.events.notify import MAX_WAITING, Notifier, is_webhook, post, run
from tests.problems import logged


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "http://", "hook", ""])
def test_only_web_addresses_are_webhooks(url):
    assert not is_webhook(url)
    assert is_webhook("https://hooks.example.com/services/T0/B0/x")


def test_a_command_gets_the_message_as_its_input(tmp_path):
    program = f"import sys; open({str(tmp_path / 'out')!r}, 'w').write(sys.stdin.read())"
    notifier = Notifier("NotifyHook", {"the command": run([sys.executable, "-c", program], 60)})
    notifier.send({"text": "done; $(touch x)", "password": "hunter2"})
    notifier.close(60)
    assert json.loads((tmp_path / "out").read_text()) == {
        "text": "done; $(touch x)",
        "password": "***",
    }


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([sys.executable, "-c", "import sys; sys.exit(3)", "hunter2"], "exit code 3"),
        (["/no/such/hunter2"], "FileNotFoundError"),
    ],
)
def test_a_failing_command_is_logged_once_and_counted(command, words, caplog):
    notifier = Notifier("NotifyHook", {"the command": run(command, 60)})
    for _ in range(3):
        notifier.send({"text": "x"})
    notifier.close(60)
    assert len(logged(caplog, words)) == 1
    assert len(logged(caplog, "3 messages")) == 1
    assert "hunter2" not in caplog.text


def test_a_webhook_that_cannot_be_reached_is_logged_without_its_address(caplog):
    notifier = Notifier("NotifyHook", {"the webhook": post("http://127.0.0.1:9/hunter2", 5)})
    notifier.send({"text": "x"})
    notifier.close(60)
    assert len(logged(caplog, "the webhook failed")) == 1
    assert "hunter2" not in caplog.text


def test_a_receiver_that_hangs_holds_up_neither_messages_nor_the_end(caplog):
    released = threading.Event()
    notifier = Notifier("NotifyHook", {"the receiver": lambda data: released.wait()})
    for _ in range(2 * MAX_WAITING):
        notifier.send({"text": "x"})
    notifier.close(0.0)
    released.set()
    assert logged(caplog, "not delivered")
