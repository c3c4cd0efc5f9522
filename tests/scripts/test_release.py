"""The checks of a release that need no build. The script itself builds and installs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.hash_release import SUMS, hash_files
from scripts.release import (
    IMPORT_ALL,
    NotReady,
    check_changelog,
    check_files,
    check_tree,
    read_version,
    run,
)

CHANGES = "# Changelog\n\n## [0.2.0] - 2026-11-20\n\n## [0.1.0] - 2026-10-01\n"


def test_a_version_has_three_numbers() -> None:
    assert read_version('"""The version."""\n\n__version__ = "0.2.0"\n') == "0.2.0"
    with pytest.raises(NotReady):
        read_version('__version__ = "0.2.0.dev1"\n')


def test_the_newest_section_of_the_changelog_is_that_of_the_version() -> None:
    check_changelog(CHANGES, "0.2.0")
    for text, version in [
        (CHANGES, "0.1.0"),
        (CHANGES, "0.3.0"),
        (CHANGES.replace("2026-11-20", "Unreleased"), "0.2.0"),
        ("# Changelog\n", "0.2.0"),
    ]:
        with pytest.raises(NotReady):
            check_changelog(text, version)


def test_the_tree_must_be_clean_and_the_version_new(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]
    run(["git", "init", "--quiet"], tmp_path)
    (tmp_path / "file").write_text("one")
    with pytest.raises(NotReady, match="file"):
        check_tree(tmp_path, "0.2.0")
    run(["git", "add", "."], tmp_path)
    run([*git, "commit", "--quiet", "--message", "one"], tmp_path)
    check_tree(tmp_path, "0.2.0")
    run(["git", "tag", "v0.2.0"], tmp_path)
    with pytest.raises(NotReady, match=r"v0\.2\.0"):
        check_tree(tmp_path, "0.2.0")
    check_tree(tmp_path, "0.2.1")


def test_a_changed_release_file_is_found(tmp_path: Path) -> None:
    wheel, sdist = tmp_path / "hookline-0.2.0-py3-none-any.whl", tmp_path / "hookline-0.2.0.tar.gz"
    wheel.write_bytes(b"wheel")
    sdist.write_bytes(b"sdist")
    (tmp_path / SUMS).write_text(hash_files(tmp_path))
    assert check_files(tmp_path, "0.2.0") == wheel
    with pytest.raises(NotReady, match=r"0\.3\.0"):
        check_files(tmp_path, "0.3.0")
    sdist.write_bytes(b"other")
    with pytest.raises(NotReady, match=r"tar\.gz"):
        check_files(tmp_path, "0.2.0")


def test_a_failing_command_is_reported_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="reason"):
        run(["sh", "-c", "echo reason; exit 3"], tmp_path)


def test_a_module_that_cannot_be_imported_ends_the_check(tmp_path: Path) -> None:
    package = tmp_path / "hookline"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "optional.py").write_text("import no_such_package")
    command = [sys.executable, "-c", IMPORT_ALL]
    run(command, tmp_path)
    (package / "broken.py").write_text("class Broken(1): ...")
    with pytest.raises(NotReady, match=r"broken\.py"):
        run(command, tmp_path)
