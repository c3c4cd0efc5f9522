"""Files from templates, none of which takes another one's place."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from hookline.cli.arguments import UsageError


def fill(template: str, **values: str) -> str:
    """The text of a template with its `$names` filled in."""
    text = files("hookline.cli").joinpath("templates", f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write new files below a folder, all or none; UsageError if one of them is there already."""
    paths = {folder / name: text for name, text in texts.items()}
    taken = [str(path) for path in paths if path.exists()]
    if taken:
        raise UsageError(f"{', '.join(taken)}: there already; nothing was written")
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return list(paths)


def missing(folder: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """Those that are not there yet, for files that many things share."""
    return {name: text for name, text in texts.items() if not (folder / name).exists()}
