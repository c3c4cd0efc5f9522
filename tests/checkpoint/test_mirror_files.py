"""The files of a work directory that are mirrored beside the checkpoints."""

from __future__ import annotations

import hashlib

from hookline.checkpoint.mirror_files import FileDescriptions, find_files


def test_logs_and_pictures_are_found_but_no_temporary_or_hidden_files(tmp_path):
    wanted = ["hookline.log", "log.jsonl", "visualizations/a.png"]
    others = [".hookline.lock", ".log.partial", "checkpoints.json", "mirror.json", ".git/config"]
    shards = ["shards_4_0a1b2c3d/__0_0.distcp"]
    for name in (*wanted, *others, *shards, "last.pth"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert list(find_files(tmp_path, {tmp_path / "last.pth"})) == wanted


def test_a_description_has_the_content_at_the_time_of_opening(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"row 1\n")
    file, part = FileDescriptions(tmp_path).open("log.jsonl")
    with file:
        with log.open("ab") as more:
            more.write(b"row 2\n")
        assert file.read(part.size) == b"row 1\n"
    assert part.sha256 == hashlib.sha256(b"row 1\n").hexdigest()


def test_a_changed_file_is_described_again(tmp_path):
    log = tmp_path / "log.jsonl"
    descriptions = FileDescriptions(tmp_path)
    hashes = []
    for text in ("a", "a", "ab"):
        if not hashes or text == "ab":
            log.write_text(text)
        file, part = descriptions.open("log.jsonl")
        file.close()
        hashes.append(part.sha256)
    assert hashes[0] == hashes[1] != hashes[2]
