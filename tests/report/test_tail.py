"""Growing files that are read piece by piece."""

from __future__ import annotations

from hookline.report.tail import Tail


def read(tail: Tail) -> list[bytes]:
    return [line for lines in tail.new_lines() for line in lines]


def test_only_complete_new_lines_are_returned(tmp_path):
    path = tmp_path / "log"
    tail = Tail(path)
    assert read(tail) == []
    path.write_bytes(b"one\ntwo\nthr")
    assert read(tail) == [b"one", b"two"]
    with path.open("ab") as file:
        file.write(b"ee\nfour\n")
    assert read(tail) == [b"three", b"four"]
    assert read(tail) == []
    assert not tail.restarted


def test_a_replaced_truncated_or_rewritten_file_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "log"
    tail = Tail(path)
    path.write_bytes(b"one\ntwo\n")
    read(tail)
    for content in (b"one\n", b"new\nmore\n", b"xyz\nabcd\nlonger\n"):
        path.write_bytes(content)
        assert read(tail) == content.split(b"\n")[:-1]
        assert tail.restarted
    path.unlink()
    assert read(tail) == []
    assert tail.restarted


def test_a_long_file_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("hookline.report.tail.PIECE_BYTES", 7)
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(50)) + b"torn")
    tail = Tail(path)
    assert read(tail) == [b"line %d" % number for number in range(50)]
    with path.open("ab") as file:
        file.write(b"\n")
    assert read(tail) == [b"torn"]
