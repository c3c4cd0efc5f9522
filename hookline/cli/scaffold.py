"""Write new files from the templates of the package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from hookline.cli.errors import CommandLineError

TEMPLATES = files("hookline.cli") / "templates"


def fill_template(name: str, **values: str) -> str:
    """Return the text of a template with its `$names` replaced."""
    text = (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def write_new_files(directory: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files below a directory and return their paths.

    Raises CommandLineError before anything is written if one of the files exists.
    """
    paths = {directory / name: text for name, text in texts.items()}
    existing = [str(path) for path in paths if path.exists()]
    if existing:
        raise CommandLineError(f"nothing was written: {', '.join(existing)} already exists")
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise CommandLineError(f"cannot write {error.filename}: {error.strerror}") from error
    return list(paths)


def without_existing(directory: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the files that do not exist yet."""
    return {name: text for name, text in texts.items() if not (directory / name).exists()}
