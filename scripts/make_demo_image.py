"""Make docs/images/demo.svg: the output of the demo and of `hookline plan`."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]


def output(folder: str, *command: str) -> str:
    """Return the output of a hookline command in a directory."""
    return subprocess.run(
        [sys.executable, "-m", "hookline", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def main() -> None:
    console = Console(record=True, width=112, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        lines = output(folder, "demo").splitlines()
        plan = output(folder, "plan", "digits.yaml").splitlines()
    reports = [line for line in lines if line.startswith(("train ", "val "))]
    endings = ("stopped", "speed ", "last ", "best ", "checkpoints ", "report ", "files ", "next ")
    end = [line for line in lines if line.startswith(endings)]
    console.print(Text("$ hookline demo", style="bold green"))
    console.print(Text("\n".join([*reports[:3], "…", *reports[-2:], *end])))
    console.print(Text("\n$ hookline plan digits.yaml", style="bold green"))
    console.print(Text("\n".join([*plan[:16], "…"])))
    svg = console.export_svg(title="hookline")
    # Remove fonts that would be loaded from the network: those of the reader suffice.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (ROOT / "docs" / "images" / "demo.svg").write_text(svg)


if __name__ == "__main__":
    main()
