"""The Python blocks of the documents in `blocks/`, which hold their headings and blocks as they stand, and running them.

They are not `.md` because a formatter would change the blocks.
"""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

HEADING_OR_BLOCK = re.compile(r"^```python\n(.*?)^```|^(#{1,6}) (.*?)$", re.MULTILINE | re.DOTALL)


def read_blocks(document: str) -> dict[str, str]:
    """Blocks by the heading they are under, with that above it, and a number if there are several: `EvalHook / 最简用法`."""
    trail: list[tuple[int, str]] = []
    blocks: dict[str, str] = {}
    for match in HEADING_OR_BLOCK.finditer(
        (Path(__file__).parent / "blocks" / f"{document}.txt").read_text(encoding="utf-8")
    ):
        if match[2]:
            trail = [(level, title) for level, title in trail if level < len(match[2])] + [
                (len(match[2]), match[3].strip())
            ]
            continue
        name = base = " / ".join(title for _, title in trail[-2:])
        number = 1
        while name in blocks:
            number += 1
            name = f"{base} ({number})"
        blocks[name] = match[1]
    return blocks


def execute(text: str, package: str, names: dict[str, Any] | None = None) -> Any:
    """The names that a block defines, when its imports of a package mean Hookline's."""
    module = types.ModuleType("document")
    vars(module).update(names or {})
    sys.modules["document"] = module  # where decorators and dataclasses look their module up
    text = re.sub(
        rf"^((?:from|import) ){package}\b",
        rf"\1hookline.compat.{package}",
        text,
        flags=re.MULTILINE,
    )
    exec(compile(text, "<document>", "exec"), vars(module))  # noqa: S102
    return module


def fill(text: str, holes: dict[str, str]) -> str:
    """The block with its placeholders replaced; each must be there."""
    for hole, content in holes.items():
        assert hole in text, hole
        text = text.replace(hole, content)
    return text
