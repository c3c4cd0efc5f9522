"""Where pictures go."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from hookline.engine import BaseHook, BaseRunner

FOLDER = "visualizations"


def publish(runner: BaseRunner, hook: BaseHook, figure: Figure, name: str = "") -> None:
    """Save `visualizations/<hook>/<name>/step_<n>.png` in the work directory and put the figure into the events.

    A picture that cannot be written is told and not worth the end of a run.
    """
    parts = [part for part in (hook.name, name) if part]
    path = runner.work_dir.joinpath(FOLDER, *map(_file_name, parts), f"step_{runner.iter:06d}.png")
    runner.events.put_figure("/".join(parts), figure)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="png")
    except OSError as error:
        runner.logger.warning("%s: cannot save a picture: %s", hook.name, error)


def _file_name(text: str) -> str:
    """A name for a file or folder that stays where it is put, whatever a hook or layer is called."""
    return re.sub(r"[^\w.\-]", "_", text).lstrip(".") or "_"
