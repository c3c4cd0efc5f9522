"""Print the size of the packages that have a size limit, and exit with 1 if one is above it.

    python scripts/check_sizes.py

The limits are in pyproject.toml, in a table `[tool.hookline.sizes."DIRECTORY"]` for each directory.
Limits in a table with `enforced = false` are reported and never fail.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Limits:
    """The largest allowed size of a directory."""

    lines: int
    files: int
    lines_per_file: int
    enforced: bool = True


def main(root: Path = ROOT) -> int:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    failed = False
    for directory, table in settings["tool"]["hookline"]["sizes"].items():
        limits = Limits(**table)
        sizes = count_lines(root / directory)
        problems = exceeded(sizes, limits)
        print(describe(directory, sizes, limits))
        for problem in problems:
            note = "" if limits.enforced else " (not enforced yet)"
            print(f"{directory}: {problem}{note}")
        if problems and limits.enforced:
            failed = True
    return 1 if failed else 0


def count_lines(directory: Path) -> dict[str, int]:
    """Return the number of lines of each Python file, the largest first."""
    sizes = {}
    for path in directory.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        sizes[path.relative_to(directory).as_posix()] = len(text.splitlines())
    return dict(sorted(sizes.items(), key=lambda item: item[1], reverse=True))


def describe(directory: str, sizes: dict[str, int], limits: Limits) -> str:
    total = sum(sizes.values())
    largest = next(iter(sizes), "none")
    return (
        f"{directory}: {len(sizes)} files (limit {limits.files}), "
        f"{total:,} lines (limit {limits.lines:,}), "
        f"largest {largest} with {sizes.get(largest, 0)} (limit {limits.lines_per_file})"
    )


def exceeded(sizes: dict[str, int], limits: Limits) -> list[str]:
    """Return a sentence for each limit that is exceeded."""
    problems = []
    total = sum(sizes.values())
    if len(sizes) > limits.files:
        problems.append(f"{len(sizes)} files, {len(sizes) - limits.files} too many")
    if total > limits.lines:
        problems.append(f"{total:,} lines, {total - limits.lines:,} too many")
    for name, lines in sizes.items():
        if lines > limits.lines_per_file:
            problems.append(f"{name} has {lines} lines, {lines - limits.lines_per_file} too many")
    return problems


if __name__ == "__main__":
    sys.exit(main())
