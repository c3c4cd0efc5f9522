from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.checkpoint.names import JOURNAL, LOCK, MANIFEST, check_name, is_temporary, safe_name, temporary_name
from hookline.errors import ConfigError


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x.pth",
        "/etc/passwd",
        "a/b.pth",
        "a\\b.pth",
        "a\0b",
        "a\nb.pth",
        "a\x1b[2J.pth",
        "a\udcff.pth",
        "x" * 256,
        "é" * 128,
    ],
)
def test_names_that_lead_out_of_the_directory_or_hide_something_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        check_name(name)


@pytest.mark.parametrize("name", [MANIFEST, JOURNAL, LOCK, temporary_name()], ids=["manifest", "journal", "lock", "temporary"])
def test_the_names_of_the_store_itself_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="the store uses this name itself"):
        check_name(name)


@pytest.mark.parametrize("name", ["epoch_1.pth", "best_accuracy.pth", "模型 3.pth", "a..b.pth", ".hidden.pth"])
def test_ordinary_names_pass(name: str) -> None:
    assert check_name(name) == name


def test_only_our_own_temporary_files_are_recognised() -> None:
    assert is_temporary(temporary_name())
    assert not any(is_temporary(name) for name in (".hookline.tmp", "epoch_1.pth.tmp", ".hookline-mine.tmp", temporary_name() + "x"))


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60))
def test_any_metric_name_becomes_part_of_a_name_in_the_directory(text: str) -> None:
    name = check_name(f"best_{safe_name(text)}.pth")
    assert (Path("/runs") / name).resolve().parent == Path("/runs")


def test_a_metric_with_a_slash_keeps_its_words() -> None:
    assert safe_name("val/accuracy") == "val_accuracy"
    assert safe_name("..") == "_"
