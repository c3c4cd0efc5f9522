"""`hookline demo`: train a config that comes with the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from hookline.cli import train
from hookline.cli.errors import CommandLineError
from hookline.cli.printing import show
from hookline.cli.scaffold import write_new_files

CONFIG = "digits.yaml"


def run(as_json: bool, debug: bool) -> int:
    """Write the config into the current directory and train it."""
    write_config(Path())
    show(f"$ hookline train {CONFIG}", errors=True)
    return train.run(
        CONFIG,
        overrides=(),
        work_dir=None,
        resume=None,
        device=None,
        nproc=None,
        max_restarts=0,
        as_json=as_json,
        debug=debug,
    )


def write_config(directory: Path) -> None:
    """Write the config of the demo, unless it is there. Raise if it was changed."""
    text = (files("hookline") / "configs" / CONFIG).read_text(encoding="utf-8")
    path = directory / CONFIG
    if not path.exists():
        write_new_files(directory, {CONFIG: text})
    elif not path.is_file() or path.read_bytes() != text.encode():
        raise CommandLineError(
            f"{path} is not the config of the demo; run: hookline train {path}, or remove it"
        )
