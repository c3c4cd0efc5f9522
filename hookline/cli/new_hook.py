"""`hookline new-hook`: write a new hook and its test."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from hookline.cli.errors import CommandLineError
from hookline.cli.output import print_json
from hookline.cli.printing import show
from hookline.cli.scaffold import fill_template, without_existing, write_new_files

HOOKS_DIRECTORY = "hooks"
# Between a lower-case letter and a capital, and before the last capital of an abbreviation.
WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def run(name: str, directory: str, as_json: bool) -> int:
    """Write the files and print how to use the hook."""
    root = Path(directory)
    hook = class_name(name)
    package = hooks_package(root)
    stem = WORD_BOUNDARY.sub("_", hook).lower()
    module = ".".join([*package.parts, stem])
    texts = {
        str(package / f"{stem}.py"): fill_template("hook", hook=hook),
        f"tests/test_{stem}.py": fill_template("hook_test", hook=hook, module=module),
    }
    shared = {str(package / "__init__.py"): "", "conftest.py": fill_template("conftest")}
    paths = write_new_files(root, {**texts, **without_existing(root, shared)})
    if as_json:
        print_json({"files": [str(path) for path in paths], "module": module, "hook": hook})
        return 0
    for path in paths:
        show(path)
    show(f"in a config: custom_imports: [{module}], and {{type: {hook}}} under hooks")
    show(f"its test: python -m pytest tests/test_{stem}.py")
    return 0


def class_name(name: str) -> str:
    """Return the class name for `slow_down`, `SlowDown` or `SlowDownHook`: `SlowDownHook`."""
    words = re.split(r"[_\-\s]+", name)
    hook = "".join(word[:1].upper() + word[1:] for word in words)
    if not hook.endswith("Hook"):
        hook = f"{hook}Hook"
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", hook) or keyword.iskeyword(hook) or hook == "Hook":
        message = f"{name!r} is not a valid name; use letters and digits, as in SlowDownHook"
        raise CommandLineError(message, parameter="NAME")
    return hook


def hooks_package(project: Path) -> Path:
    """Return the directory of a project's hooks: `hooks` inside its package, or just `hooks`."""
    found = []
    for path in sorted(project.glob(f"*/{HOOKS_DIRECTORY}/__init__.py")):
        if path.parent.parent.name.isidentifier():
            found.append(path.parent.relative_to(project))
    return found[0] if found else Path(HOOKS_DIRECTORY)
