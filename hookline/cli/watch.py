"""`hookline watch`: runs while they go, on a page of this machine or in the terminal."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
from pathlib import Path

from hookline.cli.arguments import UsageError
from hookline.events.writer import check_installed


def run(args: argparse.Namespace) -> int:
    folder = Path(args.directory)
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder; name a run, or a folder with runs")
    try:
        return _in_terminal(folder) if args.text else _on_page(folder, args.port, args.read_only)
    except KeyboardInterrupt:  # how one stops watching
        return 0


def _on_page(folder: Path, port: int, read_only: bool) -> int:
    for module in ("starlette", "uvicorn"):
        check_installed(module, "watch")
    from hookline.report.server import link, listen, serve

    listener, token = listen(port), secrets.token_urlsafe(24)
    print(
        f"{link(listener.getsockname()[1], token)}\nCtrl-C ends it; whoever has the link can use the page, from this machine alone",
        flush=True,
    )
    serve(folder, listener, read_only=read_only, token=token)
    return 0


def _in_terminal(folder: Path) -> int:
    from hookline.report.text import follow

    screens = follow(folder, width=min(max(shutil.get_terminal_size().columns - 16, 30), 100))
    if not sys.stdout.isatty():
        for screen in screens:
            print(screen, end="\n\n", flush=True)
        return 0
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, vertical_overflow="crop") as live:
        for screen in screens:
            live.update(Text(screen), refresh=True)
    return 0
