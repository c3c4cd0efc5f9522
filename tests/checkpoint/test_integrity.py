"""Comparison of checkpoint files with their manifest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hookline.checkpoint.integrity import (
    intact_name,
    integrity_error,
    last_good_name,
    newest_intact,
    read_settled_ledger,
)
from hookline.checkpoint.manifest import INEXACT, Ledger, write_ledger
from hookline.checkpoint.names import JOURNAL
from tests.checkpoint.helpers import NoLinks, Unsynced, content, flip_bit, opened, saved


def test_an_intact_file_has_no_error(tmp_path: Path) -> None:
    (entry,) = saved(tmp_path, 1).entries()
    assert integrity_error(tmp_path, "epoch_1.pth", entry) is None


def test_a_changed_bit_a_changed_size_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    store = opened(tmp_path, NoLinks())
    entry = store.save(content(1), "a.pth", links=["b.pth", "c.pth"], step=1, epoch=1)
    flip_bit(tmp_path / "a.pth")
    (tmp_path / "b.pth").write_bytes(b"short")
    (tmp_path / "c.pth").unlink()
    for name in entry.names:
        assert integrity_error(tmp_path, name, entry) is not None


def test_the_first_intact_name_is_used(tmp_path: Path) -> None:
    store = opened(tmp_path, NoLinks())
    entry = store.save(content(1), "a.pth", links=["b.pth"], step=1, epoch=1)
    problems: list[str] = []
    assert intact_name(tmp_path, entry, problems) == "a.pth"
    assert problems == []
    flip_bit(tmp_path / "a.pth")
    assert intact_name(tmp_path, entry, problems) == "b.pth"
    assert len(problems) == 1


def test_of_an_interrupted_save_the_names_that_arrived_are_kept(tmp_path: Path) -> None:
    store = saved(tmp_path, 1)
    (entry,) = store.entries()
    pending = dataclasses.replace(entry, names=("epoch_1.pth", "best.pth"), step=7)
    write_ledger(Unsynced(), tmp_path, JOURNAL, Ledger(99, (entry,), pending))
    entries = read_settled_ledger(tmp_path).entries
    assert [(entry.names, entry.step) for entry in entries] == [
        (("last.pth",), 1),
        (("epoch_1.pth",), 7),
    ]


def test_of_an_interrupted_save_without_files_nothing_is_kept(tmp_path: Path) -> None:
    store = saved(tmp_path, 1)
    (entry,) = store.entries()
    pending = dataclasses.replace(entry, names=("epoch_2.pth",), step=2)
    write_ledger(Unsynced(), tmp_path, JOURNAL, Ledger(99, (entry,), pending))
    assert read_settled_ledger(tmp_path).entries == (entry,)


def test_of_an_interrupted_removal_the_names_that_still_have_a_file_are_kept(
    tmp_path: Path,
) -> None:
    entries = saved(tmp_path, 1, 2, 3).entries()
    journal = Ledger(99, tuple(entries), removing=("epoch_1.pth", "epoch_2.pth"))
    write_ledger(Unsynced(), tmp_path, JOURNAL, journal)
    (tmp_path / "epoch_1.pth").unlink()
    (tmp_path / "epoch_3.pth").unlink()
    ledger = read_settled_ledger(tmp_path)
    assert ledger.entries == tuple(entries[1:])  # Nothing removed epoch_3.pth: it is missing.
    assert ledger.removing == ()


def test_the_newest_intact_checkpoint_is_a_resumable_one_if_there_is_any(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(content(1), "a.pth", step=1, epoch=1)
    store.save(content(2), "b.pth", step=2, epoch=2, tags=[INEXACT])
    newest = newest_intact(tmp_path, store.entries())
    assert newest is not None
    assert newest.name == "a.pth"
    flip_bit(tmp_path / "a.pth")
    newest = newest_intact(tmp_path, store.entries())
    assert newest is not None
    assert newest.name == "b.pth"


def test_the_last_good_name_is_spared_only_if_no_other_is_as_good(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for step in (1, 2):
        store.save(content(step), f"epoch_{step}.pth", step=step, epoch=step)
    entries = store.entries()
    assert last_good_name(tmp_path, entries, ["epoch_1.pth"]) is None
    assert last_good_name(tmp_path, entries, ["epoch_1.pth", "epoch_2.pth"]) == "epoch_2.pth"
    flip_bit(tmp_path / "epoch_2.pth")
    assert last_good_name(tmp_path, entries, ["epoch_1.pth"]) == "epoch_1.pth"
