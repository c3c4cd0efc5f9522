from __future__ import annotations

from pathlib import Path

import pytest

from hookline.errors import HooklineError
from hookline.events.csv import CSVWriter
from hookline.events.outbox import Row
from hookline.events.writer import WRITERS, TrackerWriter, Writer, check_installed, require, tag


class Plain(Writer):
    """A writer that keeps the scalars it gets."""

    def __init__(self) -> None:
        self.got: list[object] = []

    def write_scalars(self, mode, scalars, *, iter, epoch) -> None:
        self.got.append((mode, dict(scalars), iter, epoch))


class Tracker(TrackerWriter):
    """A tracker that keeps the scalars it gets."""

    def __init__(self) -> None:
        self.got: list[object] = []

    def log_scalars(self, scalars, step) -> None:
        self.got.append((dict(scalars), step))


@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        ("train", "loss", "train/loss"),
        ("train", "system/cpu", "system/cpu"),
        ("val", "val_loss", "val/loss"),
        ("val", "clean/accuracy", "val/clean/accuracy"),
        ("test", "val_loss", "test/val_loss"),
    ],
)
def test_a_scalar_has_a_tag_in_trackers(mode: str, name: str, expected: str) -> None:
    assert tag(mode, name) == expected


def test_a_row_of_training_is_written_at_its_step() -> None:
    writer = Plain()
    writer.write_row(Row("train", {"a": 1.0}, 5, 2, 9, 0.0))
    writer.write_row(Row("val", {"a": 1.0}, 5, 2, 9, 0.0))
    assert writer.got == [("train", {"a": 1.0}, 9, 2), ("val", {"a": 1.0}, 5, 2)]


def test_a_tracker_gets_tags_and_the_epoch_of_means() -> None:
    tracker = Tracker()
    tracker.write_scalars("train", {"loss": 1}, iter=5, epoch=2)
    tracker.write_row(Row("val", {"val_loss": 1}, 5, 2, 9, 0.0))
    assert tracker.got == [({"train/loss": 1.0, "train/epoch": 2}, 5), ({"val/loss": 1.0}, 9)]


def test_a_path_is_relative_to_the_work_directory(tmp_path: Path) -> None:
    for config in ("csv", {"type": "csv"}, {"type": "csv", "path": "metrics.csv"}):
        writer = WRITERS.build_for(config, None, tmp_path)
        assert isinstance(writer, CSVWriter)
        assert writer.path == tmp_path / "metrics.csv"
    given = {"type": "csv", "path": tmp_path / "other.csv"}
    assert WRITERS.build_for(given, None, Path("elsewhere")).path == tmp_path / "other.csv"


def test_a_writer_is_used_as_given(tmp_path: Path) -> None:
    writer = Plain()
    assert WRITERS.build_for(writer, None, tmp_path) is writer


def test_a_missing_package_is_reported_with_its_extra() -> None:
    assert require("json", "none").dumps([]) == "[]"
    for check in (check_installed, require):
        with pytest.raises(HooklineError) as caught:
            check("no_such_package", "extra")
        assert caught.value.suggestion.advice == "pip install 'hookline[extra]'"
