"""The report of a run as an object that a notebook displays."""

from __future__ import annotations

import html
from pathlib import Path

from hookline.report.collect import collect, is_run
from hookline.report.page import render_page

HEIGHT = 700  # pixels


class RunReport:
    """The report of a run. A notebook shows its page, made from the files of the run.

    Args:
        work_dir: The work directory of the run.
    """

    def __init__(self, work_dir: str | Path) -> None:
        self.work_dir = Path(work_dir)

    def __repr__(self) -> str:
        return f"RunReport({str(self.work_dir)!r})"

    def page(self) -> str:
        """Return the HTML of the page.

        Raises:
            HooklineError: If the directory has no run.
        """
        return render_page(collect([self.work_dir]), self.work_dir.name)

    def _repr_html_(self) -> str:
        if not is_run(self.work_dir):
            return f"<p>no run in {html.escape(str(self.work_dir))} yet</p>"
        # A frame, so that the page keeps its own styles and its content policy.
        source = html.escape(self.page())
        return f'<iframe srcdoc="{source}" width="100%" height="{HEIGHT}"></iframe>'
