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
    failure,
    link_or_copy,
    make_directories,
    replace_file,
    replace_text,
    write_temporary,
)
from hookline.checkpoint.names import is_temporary, temporary_name


class ThreeBytesAtATime(FileSystem):
    def write(self, descriptor: int, data: memoryview) -> int:
        return super().write(descriptor, data[:3])


class NothingArrives(FileSystem):
    """A write that claims success."""

    def write(self, descriptor: int, data: memoryview) -> int:
        return len(data)


class NoLinks(FileSystem):
    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")


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
def test_a_temporary_file_holds_everything_and_knows_its_hash(tmp_path: Path, fs: FileSystem) -> None:
    written = write_temporary(fs, tmp_path, hello)
    assert written.path.read_bytes() == b"hello world"
    assert (written.size, written.sha256) == (11, hashlib.sha256(b"hello world").hexdigest())
    assert written.path.parent == tmp_path
    assert is_temporary(written.path.name)
    assert stat.S_IMODE(written.path.stat().st_mode) == 0o600


def test_a_write_that_only_claims_success_is_noticed_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="11 bytes were written, 0 arrived"):
        write_temporary(NothingArrives(), tmp_path, hello)
    assert not list(tmp_path.iterdir())


def test_a_temporary_file_is_never_an_existing_one_or_a_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("mine")
    link.symlink_to(tmp_path / "elsewhere")
    for path in (victim, link):
        with pytest.raises(FileExistsError):
            FileSystem().create(path)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_replacing_a_file_replaces_a_link_and_not_what_it_points_to(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "target"
    victim.write_text("mine")
    target.symlink_to(victim)
    replace_file(FileSystem(), target, hello)
    assert not target.is_symlink()
    assert (victim.read_text(), target.read_bytes()) == ("mine", b"hello world")


def test_a_replacement_that_fails_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(FileSystem(), tmp_path / "target", hello)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_replaced_text_is_whole_and_readable_for_the_group(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    replace_text(target, "first")
    replace_text(target, "zwölf")
    assert target.read_text(encoding="utf-8") == "zwölf"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_second_name_is_a_hard_link_or_else_a_copy(tmp_path: Path) -> None:
    source = write_temporary(FileSystem(), tmp_path, hello).path
    assert os.path.samefile(link_or_copy(FileSystem(), source), source)
    copy = link_or_copy(NoLinks(), source)
    assert not os.path.samefile(copy, source)
    assert copy.read_bytes() == source.read_bytes()


def test_new_directories_are_synced_from_the_outside_in(tmp_path: Path) -> None:
    fs = Recorded()
    make_directories(fs, tmp_path / "a" / "b" / "c")
    assert fs.synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    make_directories(fs, tmp_path / "a" / "b" / "c")
    assert len(fs.synced) == 3


def test_missing_space_is_said_with_path_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "epoch_3.pth"
    with pytest.raises(CheckpointError) as before:
        check_space(NoSpace(), path, 301_000)
    during = failure(NoSpace(), path, OSError(errno.ENOSPC, "No space left on device"), 301_000)
    for error in (before.value, during):
        assert "\n" not in str(error)
        assert str(path) in str(error)
        assert "301,000 bytes needed, 1,000 free" in str(error)


def test_discarding_goes_on_after_a_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stuck, other = tmp_path / temporary_name(), tmp_path / temporary_name()
    stuck.mkdir()
    other.touch()
    discard(FileSystem(), [stuck, other])
    assert not other.exists()
    assert str(stuck) in caplog.text
