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
from hookline.checkpoint.manifest import Entry, Ledger, _checksum, decode, encode, read_ledger, without, write_ledger
from hookline.checkpoint.names import JOURNAL, MANIFEST

FIRST = Entry(("epoch_1.pth",), 10, "a" * 64, step=10, epoch=1, metrics={"accuracy": 0.5}, versions={"torch": "2"}, tags=("x",))
SECOND = dataclasses.replace(FIRST, names=("epoch_2.pth", "last.pth"), step=20, epoch=2, finite=False)
LEDGER = Ledger(7, (FIRST,), SECOND)

FIRST_RELEASE = """{"sha256": "9ac22d6ea9eafebb1d9fc3e6d1738af9768138dee417e9989a792b4069121ef3", "format": 1, "number": 3, "pending": null,
"entries": [{"names": ["epoch_1.pth"], "size": 10, "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
"step": 10, "epoch": 1, "metrics": {"accuracy": 0.5}, "finite": true, "time": 0.0, "versions": {"torch": "2"}, "tags": ["x"]}]}"""

entries = st.builds(
    Entry,
    names=st.lists(st.sampled_from("abcdef"), min_size=1, unique=True).map(tuple),
    size=st.integers(0),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    step=st.integers(),
    epoch=st.integers(),
    metrics=st.dictionaries(st.text(), st.floats(allow_nan=False)),
    finite=st.booleans(),
    time=st.floats(0, 1e10),
    tags=st.lists(st.text()).map(tuple),
)


@settings(deadline=None, max_examples=50)
@given(st.builds(Ledger, st.integers(0), st.lists(entries).map(tuple), st.none() | entries))
def test_what_is_encoded_is_decoded(ledger: Ledger) -> None:
    assert decode(encode(ledger)) == ledger


def test_a_manifest_of_the_first_release_is_read() -> None:
    assert decode(FIRST_RELEASE.encode()) == Ledger(3, (FIRST,), None)


def test_a_metric_that_is_not_a_number_is_kept() -> None:
    entry = dataclasses.replace(FIRST, metrics={"loss": float("nan")})
    assert str(decode(encode(Ledger(1, (entry,)))).entries[0].metrics["loss"]) == "nan"


def test_no_flipped_bit_changes_what_is_read() -> None:
    data = encode(LEDGER)
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(ValueError):
            assert decode(bytes(damaged)) == LEDGER, bit  # white space may become other white space


@settings(deadline=None, max_examples=50)
@given(st.integers(0, len(encode(LEDGER)) - 1))
def test_a_truncated_manifest_is_refused(length: int) -> None:
    with pytest.raises(ValueError):
        decode(encode(LEDGER)[:length])


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b'{"sha256": 1}', b"[" * 100_000, b"\xff\xfe"])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)


def test_names_that_lead_out_of_the_directory_are_refused_although_the_checksum_holds() -> None:
    body = {"format": 1, **dataclasses.asdict(Ledger(1, (dataclasses.replace(FIRST, names=("../victim",)),)))}
    with pytest.raises(ValueError, match="victim"):
        decode(json.dumps({"sha256": _checksum(body), **body}).encode())


def test_a_manifest_of_a_later_release_is_refused_with_that_reason() -> None:
    body = {"format": 2, "whatever": []}
    with pytest.raises(ValueError, match="another release"):
        decode(json.dumps({"sha256": _checksum(body), **body}).encode())


def test_the_newer_of_manifest_and_journal_counts(tmp_path: Path) -> None:
    assert read_ledger(tmp_path) == Ledger()
    write_ledger(FileSystem(), tmp_path, MANIFEST, Ledger(3, (FIRST,)))
    write_ledger(FileSystem(), tmp_path, JOURNAL, Ledger(4, (FIRST,), SECOND))
    assert read_ledger(tmp_path).number == 4
    write_ledger(FileSystem(), tmp_path, MANIFEST, Ledger(5, (FIRST, SECOND)))
    assert read_ledger(tmp_path) == Ledger(5, (FIRST, SECOND))


def test_one_damaged_file_is_replaced_by_the_other_and_two_are_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in (MANIFEST, JOURNAL):
        write_ledger(FileSystem(), tmp_path, name, LEDGER)
    (tmp_path / MANIFEST).write_bytes(b"{")
    assert read_ledger(tmp_path) == LEDGER
    assert MANIFEST in caplog.text
    (tmp_path / JOURNAL).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"damaged.*start afresh"):
        read_ledger(tmp_path)


def test_an_entry_goes_with_its_last_name() -> None:
    assert without((FIRST, SECOND), {"epoch_1.pth", "last.pth"}) == (dataclasses.replace(SECOND, names=("epoch_2.pth",)),)
