"""A real S3 server on loopback, and a proxy before it that injects faults."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

BUCKET = "runs"
# Faults that a rule can return for a request.
FAULTS = (
    "500",
    "503",
    "deny",
    "drop",
    "hang",
    "cut answer",
    "short answer",
    "cut upload",
    "lose answer",
)
STATUS = {
    "500": (500, "InternalError"),
    "503": (503, "SlowDown"),
    "deny": (403, "AccessDenied"),
}

Rule = Callable[[str, str], "str | None"]  # from the method and the path of a request


class QuietServer(ThreadingHTTPServer):
    """A server that ignores clients that were killed."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None: ...


class Proxy:
    """A proxy that forwards requests, or answers with a fault where `rule` returns one.

    Attributes:
        url: Its address.
        rule: Returns the fault for a request, or None.
        seen: The method and path of each request.
        faults: How many faults were injected.
    """

    def __init__(self, port: int) -> None:
        self.rule: Rule = lambda method, path: None
        self.seen: list[tuple[str, str]] = []
        self.faults = 0
        self.released = threading.Event()  # ends the requests that hang
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_request(self) -> None:
                proxy.forward(self, port)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

            def log_message(self, *args: Any) -> None: ...

        self._server = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def forward(self, request: BaseHTTPRequestHandler, port: int) -> None:
        body = _read_body(request)
        method = request.command
        fault = self.rule(method, request.path)
        self.seen.append((method, request.path))
        self.faults += fault is not None
        if fault == "hang":
            self.released.wait()
        if fault in ("hang", "drop"):
            request.close_connection = True
            return
        if fault in STATUS:
            status, code = STATUS[fault]
            text = f"<Error><Code>{code}</Code><Message>injected</Message></Error>"
            _answer(request, status, [("Content-Type", "application/xml")], text.encode())
            return
        if fault == "cut upload":
            body = body[: len(body) // 2]
        status, headers, content = _ask(port, request, body)
        if fault == "lose answer":
            request.close_connection = True
            return
        if fault == "short answer":  # A part of the content looks like all of it.
            content = content[: len(content) // 2]
        if fault == "cut answer":
            _answer(request, status, headers, content, cut=True)
            request.close_connection = True
            return
        _answer(request, status, headers, content)


def _read_body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding", "").lower() == "chunked":
        body = b""
        while size := int(request.rfile.readline().split(b";")[0], 16):
            body += request.rfile.read(size)
            request.rfile.readline()
        request.rfile.readline()
        return body
    return request.rfile.read(int(request.headers.get("Content-Length", 0)))


def _ask(
    port: int, request: BaseHTTPRequestHandler, body: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {}
    for name, value in request.headers.items():
        if name.lower() not in ("content-length", "transfer-encoding", "connection", "expect"):
            headers[name] = value
    headers["Content-Length"] = str(len(body))
    with contextlib.closing(connection):
        connection.request(request.command, request.path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()


def _answer(
    request: BaseHTTPRequestHandler,
    status: int,
    headers: list[tuple[str, str]],
    content: bytes,
    cut: bool = False,
) -> None:
    request.send_response(status)
    skipped = ["transfer-encoding", "connection", "server", "date"]
    if request.command != "HEAD":
        skipped.append("content-length")
        request.send_header("Content-Length", str(len(content)))
    for name, value in headers:
        if name.lower() not in skipped:
            request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(content[: len(content) // 2] if cut else content)


@contextlib.contextmanager
def s3_server() -> Iterator[int]:
    """Run an S3 server with one empty bucket; yield its port."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.closing(connection):
            for method, path in (("POST", "/moto-api/reset"), ("PUT", f"/{BUCKET}")):
                connection.request(method, path)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
        yield port
    finally:
        server.stop()


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before an empty S3 server, to which the environment leads s3:// URLs."""
    pytest.importorskip("s3fs")
    with s3_server() as port:
        proxy = Proxy(port)
        for name, value in environment(proxy.url).items():
            monkeypatch.setenv(name, value)
        yield proxy
        proxy.close()


def environment(url: str) -> dict[str, str]:
    """Return the environment variables with which s3:// URLs lead to a server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "AKIATESTTESTTEST",
        "AWS_SECRET_ACCESS_KEY": "very-secret-value",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",  # The client would retry a fault for ten seconds.
        "NO_PROXY": "127.0.0.1,localhost",
    }
