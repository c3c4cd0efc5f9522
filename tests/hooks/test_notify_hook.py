"""Messages of a run, received by a real web server."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from hookline.errors import ConfigError
from hookline.hooks import EvalHook, LambdaHook, NotifyHook
from tests.contracts.training import Scripted
from tests.helpers import batches, make_runner
from tests.problems import logged


def refuse(constant: str) -> None:
    """Refuse NaN and infinity, as receivers do."""
    raise ValueError(constant)


class Receiver:
    """A web server that keeps the messages it gets."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.status = 200
        self.released = threading.Event()
        self.released.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append(json.loads(data, parse_constant=refuse))
                receiver.released.wait()
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/services/t0k3n"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def fail(runner) -> None:
    if runner.iter == 2:
        raise ArithmeticError("bad value, api_key=hunter2-hunter2")


def test_the_end_and_each_new_best_result_are_reported(tmp_path, receiver):
    scores = {"accuracy": Scripted(0.5, 0.4, 0.7)}
    runner = make_runner(
        tmp_path, NotifyHook(webhook=receiver.url), EvalHook(), metrics=scores, val_loader=batches(1), max_epochs=3
    )  # fmt: skip
    runner.train()
    assert [each["event"] for each in receiver.messages] == ["best", "best", "end"]
    assert [each["metrics"]["accuracy"] for each in receiver.messages] == [0.5, 0.7, 0.7]
    assert receiver.messages[-1]["iter"] == 12
    assert tmp_path.name in receiver.messages[-1]["text"]


def test_a_failure_is_reported_without_secrets(tmp_path, receiver):
    hook = NotifyHook(webhook=receiver.url)
    with pytest.raises(ArithmeticError):
        make_runner(tmp_path, hook, LambdaHook(after_forward=fail)).train()
    (message,) = receiver.messages
    assert message["event"] == "failure"
    assert "ArithmeticError" in message["text"]
    assert "hunter2" not in json.dumps(message)


def test_a_server_that_refuses_never_stops_training(tmp_path, receiver, caplog):
    receiver.status = 500
    runner = make_runner(tmp_path, NotifyHook(webhook=receiver.url))
    runner.train()
    assert runner.iter == 8
    assert logged(caplog, "HTTP status 500")
    assert "t0k3n" not in caplog.text


def test_a_server_that_hangs_never_stops_training(tmp_path, receiver, caplog):
    receiver.released.clear()
    runner = make_runner(tmp_path, NotifyHook(webhook=receiver.url, timeout=0.2))
    runner.train()
    assert runner.iter == 8
    assert logged(caplog, "NotifyHook")


def test_a_metric_that_is_not_finite_is_null(tmp_path, receiver):
    hooks = [NotifyHook(webhook=receiver.url, moments=["end"]), EvalHook()]
    scores = {"accuracy": Scripted(math.nan), "other": Scripted(math.inf)}
    make_runner(tmp_path, *hooks, metrics=scores, val_loader=batches(1), max_epochs=1).train()
    (message,) = receiver.messages
    assert message["metrics"]["accuracy"] is message["metrics"]["other"] is None


def test_a_long_error_is_cut(tmp_path, receiver):
    def fail_at_length(runner) -> None:
        raise ArithmeticError("x" * 1_000_000)

    hook = NotifyHook(webhook=receiver.url)
    with pytest.raises(ArithmeticError):
        make_runner(tmp_path, hook, LambdaHook(after_forward=fail_at_length)).train()
    assert len(receiver.messages[0]["text"]) < 3000


def test_a_hook_without_a_receiver_is_reported(tmp_path, caplog):
    make_runner(tmp_path, NotifyHook()).train()
    assert logged(caplog, "NotifyHook", "webhook")


@pytest.mark.parametrize(
    "parameters",
    [
        {"webhook": "file:///t0k3n"},
        {"webhook": "http://[t0k3n"},
        {"timeout": 0},
        {"timeout": math.nan},
        {"timeout": math.inf},
        {"moments": ["ends"]},
    ],
)
def test_a_wrong_parameter_is_rejected_without_showing_the_address(parameters):
    with pytest.raises(ConfigError) as caught:
        NotifyHook(**parameters)
    assert caught.value.parameter in parameters
    assert "t0k3n" not in str(caught.value)


def test_saved_configs_do_not_show_the_address(tmp_path, receiver):
    from hookline.secrets import mask_secrets

    config = {"hooks": [{"type": "NotifyHook", "webhook": receiver.url}]}
    assert "t0k3n" not in yaml.safe_dump(mask_secrets(config))
