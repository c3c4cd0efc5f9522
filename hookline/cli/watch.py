"""`hookline watch`: follow running jobs in a browser or in the terminal."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from hookline.cli.errors import CommandLineError
from hookline.cli.output import chart_columns, print_json
from hookline.cli.printing import show
from hookline.events.writer import check_installed
from hookline.printable import printable


def run(directory: str, port: int, read_only: bool, text: bool, as_json: bool) -> int:
    """Show the runs until Ctrl-C, or until all of them have ended if `text` is set.

    With `as_json`, print their present state and return.
    """
    root = Path(directory)
    if not root.is_dir():
        raise CommandLineError(f"no such directory: {root}; give a run, or a directory with runs")
    if as_json:
        from hookline.report.run_list import RunList

        print_json(RunList(root).runs())
        return 0
    try:
        if text:
            _show_in_terminal(root)
        else:
            _serve_page(root, port, read_only)
    except KeyboardInterrupt:  # the normal end of watching
        pass
    return 0


def _serve_page(root: Path, port: int, read_only: bool) -> None:
    for module in ("starlette", "uvicorn"):
        check_installed(module, "watch")
    from hookline.report.server import link, listen, serve

    listener = listen(port)
    token = secrets.token_urlsafe(24)
    show(link(listener.getsockname()[1], token))
    show(
        "Press Ctrl-C to stop. All users of this machine who have the link can use it.", flush=True
    )
    serve(root, listener, read_only=read_only, token=token)


def _show_in_terminal(root: Path) -> None:
    from hookline.report.text import follow

    screens = follow(root, width=chart_columns())
    if not sys.stdout.isatty():
        for screen in screens:
            show(screen, end="\n\n", flush=True)
        return
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False, vertical_overflow="crop") as live:
        for screen in screens:
            live.update(Text(printable(screen)), refresh=True)
