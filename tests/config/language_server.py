"""A client of the YAML language server, as far as the tests need one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit


class LanguageServer:
    """A running server, which speaks JSON-RPC over its standard streams.

    Args:
        command: The program.
        root: The directory of the project.
    """

    def __init__(self, command: str, root: Path) -> None:
        self._process = subprocess.Popen(
            [command, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._ids = 0
        self.diagnostics: dict[str, list[dict[str, Any]]] = {}
        capabilities = {
            "textDocument": {
                "completion": {"completionItem": {"snippetSupport": False}},
                "hover": {"contentFormat": ["plaintext"]},
                "publishDiagnostics": {},
            },
            "workspace": {"configuration": True},
        }
        about = {"processId": None, "rootUri": root.as_uri(), "capabilities": capabilities}
        self.request("initialize", about)
        self.notify("initialized", {})

    def __enter__(self) -> LanguageServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def open(self, path: Path) -> str:
        """Open a file and return its URI, once the server has checked it."""
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": path.read_text()}
        self.notify("textDocument/didOpen", {"textDocument": document})
        while uri not in self.diagnostics:
            self._handle(self._receive())
        return uri

    def complete(self, uri: str, line: int, column: int) -> list[str]:
        """Return the labels of the completions at a position, both counted from 0."""
        found = self.request("textDocument/completion", _position(uri, line, column))
        return [item["label"] for item in found["items"]]

    def hover(self, uri: str, line: int, column: int) -> str:
        """Return the text that the editor shows at a position."""
        found = self.request("textDocument/hover", _position(uri, line, column))
        contents = found["contents"]
        return contents if isinstance(contents, str) else str(contents["value"])

    def marked(self, uri: str, diagnostic: dict[str, Any]) -> str:
        """Return the text that the editor underlines for a diagnostic of one line."""
        start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
        assert start["line"] == end["line"], diagnostic
        line = Path(urlsplit(uri).path).read_text().splitlines()[start["line"]]
        return line[start["character"] : end["character"]]

    def request(self, method: str, params: Any) -> Any:
        """Send a request and return its result."""
        self._ids += 1
        number = self._ids
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                return message["result"]
            self._handle(message)

    def notify(self, method: str, params: Any) -> None:
        """Send a message that has no answer."""
        self._send({"method": method, "params": params})

    def _handle(self, message: dict[str, Any]) -> None:
        """Answer a request of the server, or note what it found."""
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif message.get("method") == "workspace/configuration":
            on = {"validate": True, "hover": True, "completion": True, "schemaStore": {}}
            off = {**on, "schemaStore": {"enable": False}}  # needs the network
            items = message["params"]["items"]
            answers = [off if item.get("section") == "yaml" else {} for item in items]
            self._send({"id": message["id"], "result": answers})
        elif "id" in message and "method" in message:
            self._send({"id": message["id"], "result": None})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while (line := self._process.stdout.readline()) != b"\r\n":
            assert line, "the language server has ended"
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message


def _position(uri: str, line: int, column: int) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
