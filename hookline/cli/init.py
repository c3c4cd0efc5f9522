"""`hookline init`: the beginning of a project."""

from __future__ import annotations

import argparse
import keyword
import re
from pathlib import Path

from hookline.cli.scaffold import fill, missing, write


def run(args: argparse.Namespace) -> int:
    folder = Path(args.directory)
    package = package_name(folder.resolve().name)
    texts = {
        "config.yaml": fill("config", package=package),
        f"{package}/__init__.py": "",
        f"{package}/model.py": fill("model"),
        f"{package}/data.py": fill("data"),
        f"{package}/hooks/__init__.py": fill("hooks", package=package),
        f"{package}/hooks/tell_loss_hook.py": fill("hook", Name="TellLossHook"),
        "tests/test_tell_loss_hook.py": fill("hook_test", Name="TellLossHook", module=f"{package}.hooks.tell_loss_hook"),
        "tests/test_project.py": fill("project_test"),
        "conftest.py": fill("conftest"),
    }
    shared = {"README.md": fill("readme", package=package), ".gitignore": fill("gitignore")}
    for path in write(folder, {**texts, **missing(folder, shared)}):
        print(path)
    where = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    print(f"\nnext: {where}hookline rehearse config.yaml && hookline train config.yaml")
    return 0


def package_name(folder: str) -> str:
    """A folder's name as that of a package."""
    name = re.sub(r"\W+", "_", folder.lower(), flags=re.ASCII).strip("_")
    if not name or name[0].isdigit() or keyword.iskeyword(name) or name in ("hookline", "tests", "runs", "torch"):
        return f"my_{name}".rstrip("_") if name else "my_project"
    return name
