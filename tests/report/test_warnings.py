"""Warnings from a text log."""

from __future__ import annotations

import time

from hookline.report.warnings import MAX_WARNINGS, WarningReader


def test_warnings_and_errors_are_found_with_all_their_lines(tmp_path):
    path = tmp_path / "hookline.log"
    lines = [
        "2026-01-02 03:04:05,678 INFO fine",
        "2026-01-02 03:04:06,000 WARNING odd",
        "  and so on",
        "2026-01-02 03:04:07,000 INFO fine",
        "a line of another program",
        "2026-01-02 03:04:08,000 ERROR https://me:pw@host",
    ]
    path.write_text("\n".join(lines) + "\n")
    reader = WarningReader(path)
    reader.update()
    assert [(each["level"], each["text"]) for each in reader.found] == [
        ("warning", "odd\n  and so on"),
        ("error", "https://***@host"),
    ]
    moment = time.mktime(time.strptime("2026-01-02 03:04:08", "%Y-%m-%d %H:%M:%S"))
    assert [each["level"] for each in reader.since(moment)] == ["error"]


def test_the_first_warnings_are_kept_and_the_others_counted(tmp_path):
    path = tmp_path / "hookline.log"
    path.write_text(
        "".join(
            f"2026-01-02 03:04:06,000 WARNING number {number}\n  more\n"
            for number in range(MAX_WARNINGS + 30)
        )
    )
    reader = WarningReader(path)
    reader.update()
    assert (len(reader.found), reader.left_out) == (MAX_WARNINGS, 30)
    assert reader.found[-1]["text"] == f"number {MAX_WARNINGS - 1}\n  more"
