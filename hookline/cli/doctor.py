"""`hookline doctor`: check the installation, its devices and its optional parts."""

from __future__ import annotations

import importlib
import importlib.util
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

from hookline.cli.errors import CommandLineError
from hookline.cli.output import only_json, print_json, print_table
from hookline.cli.printing import show
from hookline.errors import format_exception
from hookline.version import __version__

DISTRIBUTION = "hookline"
# The module that Hookline imports of a package, if it is not the one with the package's name. The
# package itself can often be imported although this part is broken.
USED_MODULES = {
    "matplotlib": "matplotlib.figure",
    "nvidia-ml-py": "pynvml",
    "pillow": "PIL.Image",
    "tensorboard": "torch.utils.tensorboard",
}


@dataclass(frozen=True)
class PackageCheck:
    """The state of a package that Hookline uses.

    Attributes:
        part: The extra that the package belongs to; empty for a required one.
        version: The installed version; empty if the package is not installed.
        problem: The reason why it cannot be used; empty if it can, or if it is an optional package
            that is not installed.
    """

    part: str
    package: str
    version: str
    problem: str


def run(as_json: bool) -> int:
    """Print versions, devices and packages; return 1 if something does not work."""
    with only_json(as_json):  # Packages may print something when they are imported.
        checks = list(check_packages())
    about = {
        "hookline": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "devices": describe_devices(),
    }
    problems = [check for check in checks if check.problem]
    if as_json:
        packages = [vars(check) for check in checks]
        print_json({**about, "healthy": not problems, "packages": packages})
    else:
        _print(about, checks, problems)
    return 1 if problems else 0


def describe_devices() -> str:
    """Return the devices that torch can use, by name; "unknown" if torch does not work."""
    try:
        return ", ".join(_list_devices())
    except Exception:  # A broken installation may raise anything; the table has the error.
        return "unknown"


def _list_devices() -> list[str]:
    import torch

    names = [f"cpu ({torch.get_num_threads()} threads)"]
    for index in range(torch.cuda.device_count()):
        names.append(f"cuda:{index} ({torch.cuda.get_device_name(index)})")
    if torch.backends.mps.is_available():
        names.append("mps")
    return names


def check_packages(distribution: str = DISTRIBUTION) -> Iterator[PackageCheck]:
    """Check the packages that the metadata of an installed distribution requires."""
    try:
        extras = metadata.metadata(distribution).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        advice = (
            f"{distribution} is imported, but not installed; run `pip install .` in its directory"
        )
        raise CommandLineError(advice) from None
    for text in metadata.requires(distribution) or ():
        requirement = Requirement(text)
        part = _extra_of(requirement, extras)
        if part is not None:
            yield _check(part, requirement)


def _extra_of(requirement: Requirement, extras: list[str]) -> str | None:
    """Return the extra of a requirement, "" without one; None if this Python does not need it."""
    marker = requirement.marker
    if marker is None or marker.evaluate({"extra": ""}):
        return ""
    for extra in extras:
        if marker.evaluate({"extra": extra}):
            return extra
    return None


def _check(part: str, requirement: Requirement) -> PackageCheck:
    name = requirement.name
    try:
        version = metadata.version(name)
    except (metadata.PackageNotFoundError, KeyError, FileNotFoundError):
        # A folder may be left without its metadata. The last error is that of importlib_metadata,
        # which finds distributions as soon as any package imports it.
        version = ""
    if not version:
        problem = "" if part else f"not installed; run: pip install {name}"
        return PackageCheck(part, name, "", problem)
    if not requirement.specifier.contains(version, prereleases=True):
        problem = f"needs {requirement.specifier}; run: pip install '{name}{requirement.specifier}'"
        return PackageCheck(part, name, version, problem)
    return PackageCheck(part, name, version, _import_problem(_module_of(name)))


def _import_problem(module: str | None) -> str:
    if module is None:  # It installs no module: a package of data or of commands.
        return ""
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:  # The package's code may raise anything.
        return f"cannot be imported: {format_exception(error)}"
    return ""


def _module_of(name: str) -> str | None:
    """Return the module to try of an installed distribution; None if it has none."""
    name = name.lower()
    if name in USED_MODULES:
        return USED_MODULES[name]
    same = name.replace("-", "_")
    modules = _top_level_modules(metadata.distribution(name))
    # An editable installation lists no modules.
    if same in modules or importlib.util.find_spec(same) is not None:
        return same
    return modules[0] if modules else None


def _top_level_modules(distribution: metadata.Distribution) -> list[str]:
    """Return the public modules that a distribution lists.

    `importlib.metadata.packages_distributions` finds few of them in Python 3.10.
    """
    listed = set((distribution.read_text("top_level.txt") or "").split())
    for file in distribution.files or ():
        if len(file.parts) == 1 and file.suffix == ".py":
            listed.add(file.stem)
        elif len(file.parts) == 2 and file.name == "__init__.py":
            listed.add(file.parts[0])
    return sorted(module for module in listed if not module.startswith("_"))


def _print(about: dict[str, str], checks: list[PackageCheck], problems: list[PackageCheck]) -> None:
    print_table(list(about.items()))
    show()
    rows = []
    for check in checks:
        state = check.problem or ("ok" if check.version else "not installed")
        rows.append((check.part or "required", check.package, check.version or "-", state))
    print_table(rows, ("part", "package", "version", "state"))
    show()
    if problems:
        show(f"{len(problems)} of {len(checks)} packages do not work")
        return
    show("no problems found; `pip install 'hookline[PART]'` adds an optional part")
