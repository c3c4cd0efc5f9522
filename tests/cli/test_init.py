"""A project from templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.init import package_name
from hookline.cli.main import main
from tests.cli.helpers import command
from tests.cli.test_new_hook import run_tests


@pytest.mark.slow
def test_a_new_project_trains_its_tests_pass_and_a_new_hook_finds_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "my-project"
    assert main(["init", str(folder)]) == 0
    process = command("train", "config.yaml", "training.epochs=2", cwd=folder)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert (folder / "runs/my_project/report.html").is_file()
    assert main(["new-hook", "Watchful", "--dir", str(folder)]) == 0
    assert (folder / "my_project/hooks/watchful_hook.py").is_file()
    assert "7 passed" in run_tests(folder)


def test_the_readme_says_what_the_tests_need(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / "p")]) == 0
    assert "python -m pytest                  the tests (pip install pytest)\n" in (tmp_path / "p/README.md").read_text()


def test_a_second_project_in_the_same_place_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "p")]) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["init", str(tmp_path / "p")]) == 2
    assert "nothing was written" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("folder", "package"),
    [("my-project", "my_project"), ("2nd", "my_2nd"), ("class", "my_class"), ("..", "my_project"), ("Üb er", "b_er")],
)
def test_a_folder_of_any_name_gives_a_package(folder: str, package: str) -> None:
    assert package_name(folder) == package
