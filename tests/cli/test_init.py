"""`hookline init`: a project from templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.init import package_name
from hookline.cli.main import main
from tests.cli.helpers import command, error_of
from tests.cli.test_new_hook import run_tests
from tests.waiting import LIMIT_S


@pytest.mark.slow
def test_a_new_project_trains_and_passes_its_tests(tmp_path: Path) -> None:
    folder = tmp_path / "my-project"
    assert main(["init", str(folder)]) == 0
    process = command("train", "config.yaml", "training.epochs=2", cwd=folder)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, errors
    assert (folder / "runs/my_project/report.html").is_file()
    assert main(["new-hook", "Watchful", "--dir", str(folder)]) == 0
    assert (folder / "my_project/hooks/watchful_hook.py").is_file()
    assert "7 passed" in run_tests(folder)


def test_the_next_commands_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "p"
    assert main(["init", str(folder)]) == 0
    *paths, _, last = capsys.readouterr().out.splitlines()
    assert set(paths) == {str(path) for path in folder.rglob("*") if path.is_file()}
    assert last.startswith(f"next: cd {folder} && hookline dry-run")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert main(["init"]) == 0
    assert "next: hookline dry-run" in capsys.readouterr().out


def test_existing_readme_and_gitignore_are_kept(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_text() == "mine"
    assert (tmp_path / ".gitignore").is_file()


def test_a_second_project_in_the_same_place_is_rejected(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "p")]) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    error_of("init", str(tmp_path / "p"))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("folder", "package"),
    [
        ("my-project", "my_project"),
        ("2nd", "my_2nd"),
        ("class", "my_class"),
        ("torch", "my_torch"),
        ("..", "my_project"),
        ("Üb er", "b_er"),
    ],
)
def test_every_directory_name_gives_a_package_name(folder: str, package: str) -> None:
    assert package_name(folder) == package
