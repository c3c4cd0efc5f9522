"""Print to standard output and standard error, with text escaped and secrets masked."""

from __future__ import annotations

import json
import sys
from typing import Any

from hookline.printable import printable
from hookline.secrets import mask_secrets


def show(text: object = "", *, end: str = "\n", errors: bool = False, flush: bool = False) -> None:
    """Print a text to standard output, or to standard error."""
    stream = sys.stderr if errors else sys.stdout
    print(printable(text), end=end, file=stream, flush=flush)


def show_json(value: Any) -> None:
    """Print a JSON document."""
    text = json.dumps(mask_secrets(value), indent=2, ensure_ascii=False)
    print("".join(_json_character(character) for character in text))  # noqa: T201


def _json_character(character: str) -> str:
    """Return a character, or its escape sequence in JSON if it could change a terminal."""
    if character.isprintable() or character == "\n":
        return character
    return json.dumps(character).strip('"')
