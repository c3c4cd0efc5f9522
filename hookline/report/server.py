"""The live page: a server on this machine alone, for whoever has the link."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from hookline.errors import HooklineError
from hookline.report.control import ACTIONS, ask
from hookline.report.page import as_script_data, page, policy
from hookline.report.pictures import Picture
from hookline.report.watched import Watched

HOST = "127.0.0.1"
LARGEST_BODY = 10_000

Call = Callable[[Request], Awaitable[Response]]


def listen(port: int) -> socket.socket:
    """A socket on the loopback address; HooklineError if the port is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # here, so that the link works from the moment that it is printed
    except (OSError, OverflowError) as error:
        listener.close()
        raise HooklineError(f"port {port} cannot be used: {error}") from error
    return listener


def serve(folder: Path, listener: socket.socket, *, read_only: bool, token: str) -> None:
    """Serve until the process is told to end."""
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
    return f"http://{HOST}:{port}/{token}/"


def make_app(folder: Path, *, port: int, read_only: bool, token: str) -> Any:
    """The application; it answers only requests that name this machine, come from its own page, and have the token."""
    live = LivePage(Watched(folder), read_only)
    routes = [
        Route("/{token}/", live.page),
        Route("/{token}/api/runs", live.runs),
        Route("/{token}/api/data", live.data),
        Route("/{token}/api/control", live.control, methods=["POST"]),
        Route("/{token}/picture", live.picture),
    ]
    return Guard(Starlette(routes=routes), port, token)


class Guard:
    """Turns away what does not come from the page behind the link."""

    def __init__(self, app: Any, port: int, token: str) -> None:
        self._app, self._token = app, token
        names = (HOST, "localhost")
        self._hosts = {f"{name}:{port}".encode() for name in names}
        self._origins = {f"http://{name}:{port}".encode() for name in names}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        problem = self._problem(scope)
        if problem is not None:
            answer = JSONResponse({"error": problem}, status_code=403, headers=_HEADERS)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _problem(self, scope: Any) -> str | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        if len(headers.get(b"host", [])) != 1 or headers[b"host"][0] not in self._hosts:
            return "this page is for this machine alone"
        if any(origin not in self._origins for origin in headers.get(b"origin", [])):
            return "requests of other pages are refused"
        if any(site not in (b"same-origin", b"none") for site in headers.get(b"sec-fetch-site", [])) and scope["method"] != "GET":
            return "requests of other pages are refused"
        given = scope["path"].split("/")[1]
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return "the token in the link is missing or wrong"
        return None


class LivePage:
    """What the page can ask for."""

    def __init__(self, watched: Watched, read_only: bool) -> None:
        self._watched, self._read_only = watched, read_only

    def page(self, request: Request) -> Response:
        about = {"folder": str(self._watched.folder.resolve()), "read_only": self._read_only}
        text = page({"live": about, "runs": [], "differences": []}, title=self._watched.folder.resolve().name)
        return HTMLResponse(text, headers={**_HEADERS, "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'"})

    def runs(self, request: Request) -> Response:
        return _json({"runs": self._watched.runs()})

    def data(self, request: Request) -> Response:
        names = request.query_params.getlist("run")
        return _json(self._watched.data(names, lambda name: partial(_addresses, name)))

    async def control(self, request: Request) -> Response:
        if self._read_only:
            return _refused(403, "this page is read-only")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_BODY:
                return _refused(413, "too long")
        try:
            wanted = json.loads(body)
            name, action = str(wanted["run"]), wanted["action"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return _refused(400, "a run and an action are needed")
        folder = self._watched.folder_of(name)
        if folder is None or action not in ACTIONS:
            return _refused(400, "there is no such run" if folder is None else f"an action is one of {', '.join(ACTIONS)}")
        if self._watched.state(name).name != "running":
            return _refused(409, "it does not run")
        ask(folder, action)
        return _json({"asked": action}, 202)

    def picture(self, request: Request) -> Response:
        query = request.query_params
        step = query.get("step", "")
        found = (
            self._watched.picture(query.get("run", ""), query.get("series", ""), int(step)) if step.isdecimal() and len(step) < 16 else None
        )
        return (
            _refused(404, "there is no such picture")
            if found is None
            else FileResponse(found.path, media_type="image/png", headers=_HEADERS)
        )


_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def _addresses(name: str, found: dict[str, list[Picture]]) -> list[dict[str, Any]]:
    def address(picture: Picture) -> str:
        return f"picture?run={quote(name, safe='')}&series={quote(picture.series, safe='')}&step={picture.step}&size={picture.size}"

    return [
        {"name": series, "frames": [{"step": each.step, "src": address(each)} for each in pictures], "left_out": 0}
        for series, pictures in found.items()
    ]


def _json(value: Any, status: int = 200) -> Response:
    return Response(as_script_data(value).encode(), status_code=status, media_type="application/json", headers=_HEADERS)


def _refused(status: int, why: str) -> Response:
    return _json({"error": why}, status)
