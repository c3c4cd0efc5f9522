"""Check a release before it is tagged and uploaded.

    python scripts/release.py [PYTHON ...]
    python scripts/release.py --wheel WHEEL

Checks the version, the changelog and the working tree, builds the files with their hashes, and for
each PYTHON (this one by default) installs the wheel into an empty environment and uses it from an
empty directory: the demo, a new project and its tests, `hookline doctor`. With `--wheel`, only the
last part, for a wheel that exists. The first problem ends it with exit code 1.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r'^__version__ = "(\d+\.\d+\.\d+)"$', re.MULTILINE)
RELEASE = re.compile(r"^## \[(.+?)\] - (.+)$", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# Some code is evaluated when a module is imported, and may need a newer Python. A module may need an
# optional package, which is missing here.
IMPORT_ALL = """
import importlib, pkgutil, hookline

for module in pkgutil.walk_packages(hookline.__path__, "hookline."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("hookline"):
                raise
"""


class NotReady(Exception):
    """The reason why a release cannot be made."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", default=[sys.executable])
    parser.add_argument("--wheel", type=Path, help="try this wheel and check nothing else")
    args = parser.parse_args()
    try:
        version = read_version((ROOT / "hookline" / "version.py").read_text(encoding="utf-8"))
        wheel = args.wheel or build(version)
        for python in args.pythons:
            try_wheel(wheel.resolve(), python, version)
    except NotReady as problem:
        print(f"not ready: {problem}", file=sys.stderr)
        return 1
    if not args.wheel:
        print(f"ready: git tag v{version} && git push origin v{version}, then upload dist/*")
    return 0


def build(version: str) -> Path:
    """Return the new wheel of a version, if everything in the checkout is ready for a release."""
    check_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    check_tree(ROOT, version)
    run(["make", "dist"], ROOT)
    return check_files(ROOT / "dist", version)


def read_version(text: str) -> str:
    """Return the version of version.py, which must have three numbers and nothing else."""
    found = VERSION.search(text)
    if not found:
        raise NotReady("hookline/version.py: __version__ must have the form 1.2.3")
    return found[1]


def check_changelog(text: str, version: str) -> None:
    """Raise if the newest section is not that of the version, with a date."""
    found = RELEASE.search(text)
    if not found or found[1] != version:
        raise NotReady(f"CHANGELOG.md: the first section must be that of {version}")
    if not DATE.fullmatch(found[2]):
        raise NotReady(f"CHANGELOG.md: replace {found[2]!r} by the date of the release")


def check_tree(root: Path, version: str) -> None:
    """Raise if files are changed or unknown to git, or if the version has a tag."""
    changed = run(["git", "status", "--porcelain"], root)
    if changed:
        raise NotReady(f"commit or remove these files:\n{changed}")
    if run(["git", "tag", "--list", f"v{version}"], root):
        raise NotReady(f"the tag v{version} exists; raise the version in hookline/version.py")


def check_files(directory: Path, version: str) -> Path:
    """Return the wheel, if the directory has it and the sdist, with the right hashes."""
    wheel = directory / f"hookline-{version}-py3-none-any.whl"
    expected = {wheel.name, f"hookline-{version}.tar.gz"}
    hashes = {}
    for line in (directory / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        hashes[name] = digest
    if set(hashes) != expected:
        raise NotReady(f"{directory} must have {sorted(expected)}, not {sorted(hashes)}")
    for name, digest in hashes.items():
        if hashlib.sha256((directory / name).read_bytes()).hexdigest() != digest:
            raise NotReady(f"{directory / name} is not the file of SHA256SUMS")
    return wheel


def try_wheel(wheel: Path, python: str, version: str) -> None:
    """Install a wheel into an empty environment and use it outside the checkout."""
    print(f"{python}: {wheel.name} in an empty environment", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([python, "-m", "venv", "environment"], folder)
        scripts = folder / "environment" / "bin"
        install = ["python", "-m", "pip", "install", "--quiet", "--no-compile"]
        constraints = ["-c", str(ROOT / "constraints.txt")]
        run([*install, *constraints, str(wheel), "pytest"], folder, scripts)
        shown = run(["hookline", "--version"], folder, scripts)
        if shown != f"hookline {version}":
            raise NotReady(f"the wheel is {shown!r}, not version {version}")
        run(["python", "-c", IMPORT_ALL], folder, scripts)
        run(["hookline", "demo"], folder, scripts)
        run(["hookline", "init", "project"], folder, scripts)
        run(["python", "-m", "pytest", "--quiet"], folder / "project", scripts)
        run(["hookline", "doctor"], folder, scripts)


def run(command: Sequence[str], directory: Path, scripts: Path | None = None) -> str:
    """Run a command and return its output. Raise with all of it if the command fails.

    Args:
        command: The command and its arguments.
        directory: The working directory.
        scripts: The directory with the commands of an environment.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if scripts is not None:
        environment["PATH"] = os.pathsep.join([str(scripts), environment["PATH"]])
        command = [str(scripts / command[0]), *command[1:]]
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        words = " ".join(command)
        raise NotReady(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
