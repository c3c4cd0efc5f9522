"""`hookline init`: start a project."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from hookline.cli.output import print_json
from hookline.cli.printing import show
from hookline.cli.scaffold import fill_template, without_existing, write_new_files

RESERVED_NAMES = ("hookline", "tests", "runs", "torch")
EXAMPLE_HOOK = "LossLogHook"
EXAMPLE_MODULE = "loss_log_hook"


def run(directory: str, as_json: bool) -> int:
    """Write the files of a project and print the next commands."""
    root = Path(directory)
    package = package_name(root.resolve().name)
    shared = {
        "README.md": fill_template("readme", package=package),
        ".gitignore": fill_template("gitignore"),
    }
    texts = {**_project_files(package), **without_existing(root, shared)}
    paths = write_new_files(root, texts)
    command = "hookline dry-run config.yaml && hookline train config.yaml"
    if root.resolve() != Path.cwd():
        command = f"cd {root} && {command}"
    if as_json:
        print_json({"files": [str(path) for path in paths], "next": command})
        return 0
    for path in paths:
        show(path)
    show(f"\nnext: {command}")
    return 0


def package_name(directory: str) -> str:
    """Return a valid package name for the name of a directory."""
    name = re.sub(r"\W+", "_", directory.lower(), flags=re.ASCII).strip("_")
    if not name:
        return "my_project"
    if name[0].isdigit() or keyword.iskeyword(name) or name in RESERVED_NAMES:
        return f"my_{name}"
    return name


def _project_files(package: str) -> dict[str, str]:
    hook_module = f"{package}.hooks.{EXAMPLE_MODULE}"
    return {
        "config.yaml": fill_template("config", package=package, hook=EXAMPLE_HOOK),
        f"{package}/__init__.py": "",
        f"{package}/model.py": fill_template("model"),
        f"{package}/data.py": fill_template("data"),
        f"{package}/hooks/__init__.py": fill_template(
            "hooks", module=hook_module, hook=EXAMPLE_HOOK
        ),
        f"{package}/hooks/{EXAMPLE_MODULE}.py": fill_template("hook", hook=EXAMPLE_HOOK),
        f"tests/test_{EXAMPLE_MODULE}.py": fill_template(
            "hook_test", hook=EXAMPLE_HOOK, module=hook_module
        ),
        "tests/test_project.py": fill_template("project_test"),
        "conftest.py": fill_template("conftest"),
    }
