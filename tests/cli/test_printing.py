from __future__ import annotations

import json

from hookline.cli.printing import show, show_json


def test_a_text_is_escaped_and_masked_on_the_chosen_stream(capsys) -> None:
    show("a\x1b[2J password=hunter22", errors=True)
    show("b", end="|")
    shown = capsys.readouterr()
    assert shown.out == "b|"
    assert shown.err.startswith("a\\x1b[2J")
    assert "hunter22" not in shown.err


def test_json_stays_json_without_control_characters(capsys) -> None:
    show_json({"ü": "a\x1b\u202e\n", "api_key": "hunter22"})
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "hunter22" not in out
    document = json.loads(out)
    assert document["ü"] == "a\x1b\u202e\n"
    assert out.splitlines()[1].startswith('  "ü"')
