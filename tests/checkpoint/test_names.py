"""Names of checkpoints and of the store's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.checkpoint.names import (
    LEDGER_TEMPORARIES,
    LEDGERS,
    LOCK,
    check_name,
    is_number_template,
    is_reserved_name,
    is_shard_directory,
    is_temporary,
    new_token,
    safe_name,
    shard_directory_name,
    temporary_name,
)
from tests.problems import raises_problem


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
def test_names_that_leave_the_directory_or_cannot_be_printed_are_rejected(name: str) -> None:
    with raises_problem(parameter="name", value=name):
        check_name(name)


@pytest.mark.parametrize(
    "name",
    [*LEDGERS, *LEDGER_TEMPORARIES, LOCK, temporary_name()],
    ids=[*LEDGERS, *LEDGER_TEMPORARIES, LOCK, "temporary"],
)
def test_the_names_of_the_store_itself_are_rejected(name: str) -> None:
    with raises_problem(parameter="name", value=name):
        check_name(name)


@pytest.mark.parametrize(
    "name", ["epoch_1.pth", "best_accuracy.pth", "模型 3.pth", "a..b.pth", ".hidden.pth"]
)
def test_ordinary_names_pass(name: str) -> None:
    assert check_name(name) == name


def test_a_store_recognizes_its_temporary_files_by_its_token() -> None:
    token = new_token()
    assert is_temporary(temporary_name(token), token)
    assert not is_temporary(temporary_name(new_token()), token)
    assert not is_temporary(temporary_name(), token)


@pytest.mark.parametrize(
    "name",
    [".hookline.tmp", "epoch_1.pth.tmp", ".hookline-mine.tmp", temporary_name() + "x"],
    ids=["short", "checkpoint", "word", "longer"],
)
def test_other_files_are_not_temporary_files_of_the_store(name: str) -> None:
    assert not is_temporary(name)


def test_shard_directories_have_a_random_part() -> None:
    assert is_shard_directory(shard_directory_name(12))
    assert shard_directory_name(12) != shard_directory_name(12)
    for name in ("shards_mine", "shards_12", "shards_12_0a1b2c3d4", "src"):
        assert not is_shard_directory(name)


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60))
def test_any_metric_name_becomes_part_of_a_file_name(text: str) -> None:
    name = check_name(f"best_{safe_name(text)}.pth")
    assert (Path("/runs") / name).resolve().parent == Path("/runs")


def test_a_metric_with_a_slash_keeps_its_words() -> None:
    assert safe_name("val/accuracy") == "val_accuracy"
    assert safe_name("..") == "_"


def test_the_names_of_last_and_best_are_reserved_for_good_checkpoints() -> None:
    assert is_reserved_name("last.pth")
    assert is_reserved_name("best_accuracy.pth")
    assert not is_reserved_name("epoch_1.pth")


@pytest.mark.parametrize(
    "template", ["{}", "epoch_{}.pth", "{0}.pth", "{:03d}.pth", "{:5}", "{{{}}}"]
)
def test_a_template_makes_one_name_for_each_number(template: str) -> None:
    assert is_number_template(template)
    assert template.format(1) != template.format(2)


@pytest.mark.parametrize(
    "template",
    [
        "same.pth",
        "{}_{}.pth",
        "{:0999999999d}.pth",
        "{:100}",
        "{:{}}",
        "{:.99f}",
        "{0.__class__}",
        "{name}",
        "{!r}",
        "{",
        "{0[0]}",
    ],
)
def test_a_template_of_another_form_is_refused_without_formatting_it(template: str) -> None:
    assert not is_number_template(template)
