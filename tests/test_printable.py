from __future__ import annotations

import pytest

from hookline.printable import escaped, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 中", "plain ü 中"),
        ("a\tb", "a\tb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc", "a\\nb\tc"),
        ("\u202e", "\\u202e"),
    ],
)
def test_control_characters_are_escaped_in_one_line(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_lines_are_kept_and_objects_are_converted() -> None:
    assert printable("a\x07\nb") == "a\\x07\nb"
    assert printable(3) == "3"


def test_secrets_are_masked() -> None:
    assert "hunter22" not in printable("password=hunter22")
