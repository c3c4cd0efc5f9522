"""The manifest and the journal."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.manifest import (
    MAX_INTEGER,
    Entry,
    Ledger,
    Part,
    checksum,
    decode,
    encode,
    read_ledger,
    without,
    write_ledger,
)
from hookline.checkpoint.names import JOURNAL, MANIFEST

FIRST = Entry(
    ("epoch_1.pth",),
    10,
    "a" * 64,
    step=10,
    epoch=1,
    metrics={"accuracy": 0.5},
    versions={"torch": "2"},
    tags=("x",),
)
SECOND = dataclasses.replace(
    FIRST, names=("epoch_2.pth", "last.pth"), step=20, epoch=2, finite=False
)
LEDGER = Ledger(
    7, (FIRST,), SECOND, "0123456789abcdef", ("shards_12_0a1b2c3d",), removing=("epoch_0.pth",)
)

FIRST_RELEASE = {
    "sha256": "9ac22d6ea9eafebb1d9fc3e6d1738af9768138dee417e9989a792b4069121ef3",
    "format": 1,
    "number": 3,
    "pending": None,
    "entries": [
        {
            "names": ["epoch_1.pth"],
            "size": 10,
            "sha256": "a" * 64,
            "step": 10,
            "epoch": 1,
            "metrics": {"accuracy": 0.5},
            "finite": True,
            "time": 0.0,
            "versions": {"torch": "2"},
            "tags": ["x"],
        }
    ],
}

entries = st.builds(
    Entry,
    names=st.lists(st.sampled_from("abcdef"), min_size=1, unique=True).map(tuple),
    size=st.integers(0, MAX_INTEGER),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    step=st.integers(-MAX_INTEGER, MAX_INTEGER),
    epoch=st.integers(-MAX_INTEGER, MAX_INTEGER),
    metrics=st.dictionaries(st.text(), st.floats(allow_nan=False)),
    finite=st.booleans(),
    time=st.floats(0, 1e10),
    tags=st.lists(st.text()).map(tuple),
)


@settings(deadline=None, max_examples=50)
@given(
    st.builds(
        Ledger,
        number=st.integers(0, MAX_INTEGER),
        entries=st.lists(entries).map(tuple),
        pending=st.none() | entries,
        shards=st.sampled_from([(), ("shards_12_0a1b2c3d",)]),
    )
)
def test_a_ledger_survives_a_round_trip(ledger: Ledger) -> None:
    assert decode(encode(ledger)) == ledger


def test_a_manifest_of_the_first_release_is_read() -> None:
    assert decode(json.dumps(FIRST_RELEASE).encode()) == Ledger(3, (FIRST,), None)


def test_a_metric_that_is_not_a_number_is_kept() -> None:
    entry = dataclasses.replace(FIRST, metrics={"loss": float("nan")})
    assert str(decode(encode(Ledger(1, (entry,)))).entries[0].metrics["loss"]) == "nan"


def test_no_flipped_bit_changes_the_ledger() -> None:
    data = encode(LEDGER)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(ValueError):
            assert decode(bytes(damaged)) == LEDGER, bit  # white space may become other white space


@settings(deadline=None, max_examples=50)
@given(st.integers(0, len(encode(LEDGER)) - 1))
def test_a_truncated_manifest_is_rejected(length: int) -> None:
    with pytest.raises(ValueError):
        decode(encode(LEDGER)[:length])


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b'{"sha256": 1}', b"[" * 100_000, b"\xff\xfe"]
)
def test_any_other_content_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)


def signed(**body: object) -> bytes:
    """Return a manifest whose checksum is right."""
    content = {"format": 1, **body}
    return json.dumps({"sha256": checksum(content), **content}).encode()


@pytest.mark.parametrize(
    "ledger",
    [
        Ledger(1, (dataclasses.replace(FIRST, names=("../victim",)),)),
        Ledger(1, (dataclasses.replace(FIRST, parts=(Part("a/../victim", 1, ""),)),)),
        Ledger(1, pending=dataclasses.replace(FIRST, names=("/victim",))),
        Ledger(1, shards=("../shards_12_0a1b2c3d",)),
        Ledger(1, shards=("src",)),
        Ledger(1, removing=("../victim",)),
    ],
    ids=["name", "part", "pending", "path", "directory", "removing"],
)
def test_names_that_are_not_in_the_directory_are_rejected_even_with_a_right_checksum(
    ledger: Ledger,
) -> None:
    with pytest.raises(ValueError):
        decode(signed(**dataclasses.asdict(ledger)))


def test_a_malformed_manifest_is_rejected_even_with_a_right_checksum() -> None:
    for body in ({}, {"number": 1, "pending": None}, {"number": 1, "pending": 1, "entries": []}):
        with pytest.raises(ValueError):
            decode(signed(**body))


def test_a_manifest_of_a_later_release_is_rejected_with_the_reason() -> None:
    with pytest.raises(ValueError, match="format 2"):
        decode(signed(format=2, fields=[]))


def test_the_newer_one_of_manifest_and_journal_is_used(tmp_path: Path) -> None:
    assert read_ledger(tmp_path) == Ledger()
    write_ledger(FileSystem(), tmp_path, MANIFEST, Ledger(3, (FIRST,)))
    write_ledger(FileSystem(), tmp_path, JOURNAL, Ledger(4, (FIRST,), SECOND))
    assert read_ledger(tmp_path).number == 4
    write_ledger(FileSystem(), tmp_path, MANIFEST, Ledger(5, (FIRST, SECOND)))
    assert read_ledger(tmp_path) == Ledger(5, (FIRST, SECOND))


def test_one_damaged_file_is_replaced_by_the_other_one_and_two_are_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (MANIFEST, JOURNAL):
        write_ledger(FileSystem(), tmp_path, name, LEDGER)
    (tmp_path / MANIFEST).write_bytes(b"{")
    assert read_ledger(tmp_path) == LEDGER
    assert MANIFEST in caplog.text
    (tmp_path / JOURNAL).write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        read_ledger(tmp_path)
    files = [problem.file for problem in caught.value.problems]
    assert files == [str(tmp_path / MANIFEST), str(tmp_path / JOURNAL)]
    assert caught.value.suggestion.advice


def test_an_entry_without_names_is_dropped() -> None:
    assert without((FIRST, SECOND), {"epoch_1.pth", "last.pth"}) == (
        dataclasses.replace(SECOND, names=("epoch_2.pth",)),
    )


def test_only_shard_directories_that_no_entry_uses_are_unused() -> None:
    part = Part("shards_1_0a1b2c3d/__0_0.distcp", 1, "")
    entry = dataclasses.replace(FIRST, parts=(part,))
    ledger = Ledger(1, (entry,), shards=("shards_1_0a1b2c3d", "shards_2_0a1b2c3d"))
    assert ledger.unused_shards() == ["shards_2_0a1b2c3d"]


def test_a_leftover_temporary_file_of_a_killed_process_does_not_stop_the_next_write(
    tmp_path: Path,
) -> None:
    (tmp_path / f"{MANIFEST}.tmp").write_bytes(b"torn")
    write_ledger(FileSystem(), tmp_path, MANIFEST, LEDGER)
    assert read_ledger(tmp_path) == LEDGER
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]
