"""`hookline new-hook`: the beginning of a hook, with its test."""

from __future__ import annotations

import argparse
import keyword
import re
from pathlib import Path

from hookline.cli.arguments import UsageError
from hookline.cli.scaffold import fill, missing, write

FOLDER = "hooks"


def run(args: argparse.Namespace) -> int:
    folder, name = Path(args.dir), class_name(args.name)
    place = hooks_folder(folder)
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    module = ".".join([*place.parts, stem])
    shared = {str(place / "__init__.py"): "", "conftest.py": fill("conftest")}
    texts = {str(place / f"{stem}.py"): fill("hook", Name=name), f"tests/test_{stem}.py": fill("hook_test", Name=name, module=module)}
    for path in write(folder, {**texts, **missing(folder, shared)}):
        print(path)
    print(f"in a config: custom_imports: [{module}], and {{type: {name}}} under hooks; its test: python -m pytest tests/test_{stem}.py")
    return 0


def class_name(given: str) -> str:
    """`slow_down`, `SlowDown` and `SlowDownHook` are all `SlowDownHook`; UsageError for what cannot name a class."""
    words = re.split(r"[_\-\s]+", given)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    name = name if name.endswith("Hook") else f"{name}Hook"
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name) or keyword.iskeyword(name) or name == "Hook":
        raise UsageError(f"{given!r} cannot be the name of a hook: letters and digits, as in SlowDownHook")
    return name


def hooks_folder(folder: Path) -> Path:
    """Where a project has its hooks: a package in it with `hooks`, or a folder of that name."""
    found = sorted(path.parent for path in folder.glob(f"*/{FOLDER}/__init__.py") if path.parent.parent.name.isidentifier())
    return found[0].relative_to(folder) if found else Path(FOLDER)
