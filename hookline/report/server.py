"""The server of the live page. It listens on the loopback address and requires a token."""

from __future__ import annotations

import json
import secrets
import socket
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from hookline.errors import HooklineError
from hookline.report.control import ACTIONS, send_request
from hookline.report.page import content_policy, encode_for_script, render_page
from hookline.report.pictures import Picture
from hookline.report.run_list import RunList

HOST = "127.0.0.1"
MAX_BODY_BYTES = 10_000
MAX_STEP_DIGITS = 15
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def listen(port: int) -> socket.socket:
    """Return a socket on the loopback address; raise HooklineError if the port is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # Before the link is printed, so that it works at once.
    except (OSError, OverflowError) as error:
        listener.close()
        raise HooklineError(f"port {port} cannot be used: {error}") from error
    return listener


def serve(folder: Path, listener: socket.socket, *, read_only: bool, token: str) -> None:
    """Serve the live page of the runs below a folder until the process is interrupted."""
    import uvicorn

    port = listener.getsockname()[1]
    config = uvicorn.Config(
        make_app(folder, port=port, read_only=read_only, token=token),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listener])


def link(port: int, token: str) -> str:
    """Return the address of the live page."""
    return f"http://{HOST}:{port}/{token}/"


def make_app(folder: Path, *, port: int, read_only: bool, token: str) -> Any:
    """Return the application, behind a guard."""
    live = LivePage(RunList(folder), read_only)
    routes = [
        Route("/{token}/", live.page),
        Route("/{token}/api/runs", live.runs),
        Route("/{token}/api/data", live.data),
        Route("/{token}/api/control", live.control, methods=["POST"]),
        Route("/{token}/picture", live.picture),
    ]
    return Guard(Starlette(routes=routes), port, token)


class Guard:
    """Rejects requests to other hosts, from other pages, or without the token."""

    def __init__(self, app: Any, port: int, token: str) -> None:
        self._app = app
        self._token = token
        names = (HOST, "localhost")
        self._hosts = {f"{name}:{port}".encode() for name in names}
        self._origins = {f"http://{name}:{port}".encode() for name in names}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        problem = self._problem(scope)
        if problem is not None:
            answer = JSONResponse({"error": problem}, status_code=403, headers=HEADERS)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _problem(self, scope: Any) -> str | None:
        """Return the reason for rejecting a request, or None."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "this page is available on this machine only"
        if not self._origins.issuperset(headers.get(b"origin", [])):
            return "requests from other pages are rejected"
        sites = set(headers.get(b"sec-fetch-site", []))
        if scope["method"] != "GET" and not sites <= {b"same-origin", b"none"}:
            return "requests from other pages are rejected"
        given = scope["path"].split("/")[1]
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return "the token in the link is missing or wrong"
        return None


class LivePage:
    """The page and the requests that it makes."""

    def __init__(self, run_list: RunList, read_only: bool) -> None:
        self._run_list = run_list
        self._read_only = read_only

    def page(self, request: Request) -> Response:
        folder = self._run_list.folder.resolve()
        live = {"folder": str(folder), "read_only": self._read_only}
        text = render_page({"live": live, "runs": [], "differences": []}, title=folder.name)
        policy = f"{content_policy(live=True)}; frame-ancestors 'none'"
        return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": policy})

    def runs(self, request: Request) -> Response:
        return _json({"runs": self._run_list.runs()})

    def data(self, request: Request) -> Response:
        names = request.query_params.getlist("run")
        return _json(self._run_list.data(names, lambda name: partial(_link_pictures, name)))

    async def control(self, request: Request) -> Response:
        """Pass a request to save or stop to a running training."""
        if self._read_only:
            return _error(403, "this page is read-only")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_BODY_BYTES:
                return _error(413, "the request is too long")
        try:
            content = json.loads(body)
            name = str(content["run"])
            action = content["action"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return _error(400, "the request needs a run and an action")
        folder = self._run_list.folder_of(name)
        if folder is None:
            return _error(400, "there is no such run")
        if action not in ACTIONS:
            return _error(400, f"the action must be one of {', '.join(ACTIONS)}")
        if self._run_list.state(name).name != "running":
            return _error(409, "the run has ended")
        send_request(folder, action)
        return _json({"requested": action}, 202)

    def picture(self, request: Request) -> Response:
        query = request.query_params
        step = query.get("step", "")
        found = None
        if step.isdecimal() and len(step) <= MAX_STEP_DIGITS:
            run = query.get("run", "")
            found = self._run_list.picture(run, query.get("series", ""), int(step))
        if found is None:
            return _error(404, "there is no such picture")
        return FileResponse(found.path, media_type="image/png", headers=HEADERS)


def _link_pictures(run: str, found: dict[str, list[Picture]]) -> list[dict[str, Any]]:
    """Return the series of a run with the addresses of their pictures."""
    result = []
    for series, pictures in found.items():
        frames = [{"step": each.step, "src": _address(run, each)} for each in pictures]
        result.append({"name": series, "frames": frames, "left_out": 0})
    return result


def _address(run: str, picture: Picture) -> str:
    query = {
        "run": run,
        "series": picture.series,
        "step": picture.step,
        "size": picture.size,  # a picture that was overwritten gets another address
    }
    return f"picture?{urlencode(query)}"


def _json(value: Any, status: int = 200) -> Response:
    return Response(
        encode_for_script(value).encode(),
        status_code=status,
        media_type="application/json",
        headers=HEADERS,
    )


def _error(status: int, reason: str) -> Response:
    return _json({"error": reason}, status)
