"""Durable file operations."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

import pytest

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import (
    FileSystem,
    HashingWriter,
    check_space,
    discard,
    link_or_copy,
    make_directories,
    remove_flat_directory,
    replace_file,
    replace_text,
    save_error,
    write_temporary,
)
from hookline.checkpoint.names import temporary_name
from tests.checkpoint.helpers import NoLinks


class ThreeBytesAtATime(FileSystem):
    def write(self, descriptor: int, data: memoryview) -> int:
        return super().write(descriptor, data[:3])


class LosesWrites(FileSystem):
    """A file system whose writes report success and store nothing."""

    def write(self, descriptor: int, data: memoryview) -> int:
        return len(data)


class NoSpace(FileSystem):
    def free_bytes(self, directory: Path) -> int:
        return 1000


class Recorded(FileSystem):
    def __init__(self) -> None:
        self.synced: list[Path] = []

    def sync_directory(self, directory: Path) -> None:
        super().sync_directory(directory)
        self.synced.append(directory)


def hello(stream: HashingWriter) -> None:
    stream.write(b"hello ")
    stream.write(memoryview(b"world"))


@pytest.mark.parametrize("fs", [FileSystem(), ThreeBytesAtATime()])
def test_a_temporary_file_has_the_content_size_and_hash(tmp_path: Path, fs: FileSystem) -> None:
    written = write_temporary(fs, tmp_path / "new", hello)
    assert written.path.read_bytes() == b"hello world"
    assert written.size == 11
    assert written.sha256 == hashlib.sha256(b"hello world").hexdigest()
    assert written.path == tmp_path / "new"
    assert stat.S_IMODE(written.path.stat().st_mode) == 0o600


def test_a_lost_write_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        write_temporary(LosesWrites(), tmp_path / "new", hello)
    assert caught.value.errno == errno.EIO
    assert not list(tmp_path.iterdir())


def test_create_opens_neither_an_existing_file_nor_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for path in (victim, link):
        with pytest.raises(FileExistsError):
            FileSystem().create(path)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_replace_file_replaces_a_link_and_not_its_target(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    target = tmp_path / "target"
    target.symlink_to(victim)
    replace_file(FileSystem(), target, hello)
    assert not target.is_symlink()
    assert victim.read_text() == "mine"
    assert target.read_bytes() == b"hello world"


def test_a_failed_replacement_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(FileSystem(), tmp_path / "target", hello)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_replaced_text_is_complete_and_readable_for_the_group(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    replace_text(target, "first")
    replace_text(target, "zwölf")
    assert target.read_text(encoding="utf-8") == "zwölf"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_second_name_is_a_hard_link_or_else_a_copy(tmp_path: Path) -> None:
    source = write_temporary(FileSystem(), tmp_path / "source", hello).path
    link = link_or_copy(FileSystem(), source, tmp_path / "link")
    assert os.path.samefile(link, source)
    copy = link_or_copy(NoLinks(), source, tmp_path / "copy")
    assert not os.path.samefile(copy, source)
    assert copy.read_bytes() == source.read_bytes()


def test_new_directories_are_synced_from_the_outside_in(tmp_path: Path) -> None:
    fs = Recorded()
    make_directories(fs, tmp_path / "a" / "b" / "c")
    assert fs.synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    make_directories(fs, tmp_path / "a" / "b" / "c")
    assert len(fs.synced) == 3


def test_a_new_private_directory_is_never_an_existing_one(tmp_path: Path) -> None:
    FileSystem().create_directory(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    with pytest.raises(FileExistsError):
        FileSystem().create_directory(tmp_path / "a")


def test_a_flat_directory_is_removed_with_its_files_and_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    directory = tmp_path / "directory"
    directory.mkdir()
    (directory / "file").touch()
    (directory / "link").symlink_to(victim)
    remove_flat_directory(FileSystem(), directory)
    assert not directory.exists()
    assert victim.read_text() == "mine"


def test_a_link_to_a_directory_and_a_nested_directory_are_not_removed(tmp_path: Path) -> None:
    nested = tmp_path / "outer" / "nested"
    nested.mkdir(parents=True)
    (nested / "file").touch()
    link = tmp_path / "link"
    link.symlink_to(nested)
    for path in (link, tmp_path / "outer"):
        with pytest.raises(OSError):
            remove_flat_directory(FileSystem(), path)
    assert (nested / "file").exists()
    assert link.is_symlink()


def test_an_error_for_a_full_disk_has_the_path_and_the_bytes_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "epoch_3.pth"
    with pytest.raises(CheckpointError) as before:
        check_space(NoSpace(), path, 301_000)
    during = save_error(NoSpace(), path, OSError(errno.ENOSPC, "No space left on device"), 301_000)
    for error in (before.value, during):
        assert error.file == str(path)
        assert "\n" not in str(error)
        assert "301,000" in str(error)
        assert "1,000" in str(error)


def test_discard_continues_after_a_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = tmp_path / temporary_name()
    stuck.mkdir()
    other = tmp_path / temporary_name()
    other.touch()
    discard(FileSystem(), [stuck, other])
    assert not other.exists()
    assert str(stuck) in caplog.text


def test_a_file_and_its_directory_are_synced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    file_system = FileSystem()
    descriptor = file_system.create(tmp_path / "file")
    file_system.sync(descriptor)
    file_system.close(descriptor)
    file_system.sync_directory(tmp_path)
    assert synced == [(tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino]
