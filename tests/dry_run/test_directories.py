"""Checks of directories."""

from __future__ import annotations

from pathlib import Path

from hookline.checkpoint import CheckpointStore
from hookline.dry_run.directories import check_unused, check_writable, nearest_existing


def save(directory: Path, step: int = 7) -> None:
    store = CheckpointStore(directory)
    store.prepare()
    store.save({"state_dict": {}, "rng": {}, "meta": {}}, "last.pth", step=step, epoch=1)
    store.unlock()


def test_the_nearest_existing_parent_is_found(tmp_path: Path) -> None:
    assert nearest_existing(tmp_path / "a" / "b") == tmp_path
    assert nearest_existing(tmp_path) == tmp_path
    (tmp_path / "file").touch()
    assert nearest_existing(tmp_path / "file" / "b") == tmp_path / "file"


def test_a_new_directory_is_writable_and_not_created(tmp_path: Path) -> None:
    assert check_writable(tmp_path / "a" / "b", "work_dir") == []
    assert list(tmp_path.iterdir()) == []


def test_a_directory_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (finding,) = check_writable(tmp_path / "file" / "b", "mine")
    assert (finding.level, finding.where) == ("error", "mine")


def test_a_read_only_directory_is_an_error(unprivileged_folder: Path) -> None:
    assert check_writable(unprivileged_folder / "a", "work_dir") == []
    unprivileged_folder.chmod(0o500)
    (finding,) = check_writable(unprivileged_folder / "a", "work_dir")
    assert finding.level == "error"


def test_a_missing_or_empty_directory_is_unused(tmp_path: Path) -> None:
    assert check_unused(tmp_path / "a", resumes=False) == []
    assert check_unused(tmp_path, resumes=False) == []
    assert list(tmp_path.iterdir()) == []


def test_old_checkpoints_are_a_warning_unless_the_run_resumes(tmp_path: Path) -> None:
    save(tmp_path, step=7)
    (finding,) = check_unused(tmp_path, resumes=False)
    assert (finding.level, finding.where) == ("warning", "work_dir")
    assert "iteration 7" in finding.text
    assert check_unused(tmp_path, resumes=True) == []


def test_a_locked_directory_is_an_error(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    store.lock()
    try:
        (finding,) = check_unused(tmp_path, resumes=True)
    finally:
        store.unlock()
    assert (finding.level, finding.where) == ("error", "work_dir")
    assert check_unused(tmp_path, resumes=True) == []
