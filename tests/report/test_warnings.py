"""Warnings from a text log."""

from __future__ import annotations

import time

from hookline.report.warnings import MOST, WarningReader


def test_warnings_and_errors_are_found_with_their_further_lines(tmp_path):
    path = tmp_path / "hookline.log"
    path.write_text(
        "2026-01-02 03:04:05,678 INFO fine\n2026-01-02 03:04:06,000 WARNING odd\n  and so on\n"
        "2026-01-02 03:04:07,000 INFO fine\nnot a line of ours\n2026-01-02 03:04:08,000 ERROR https://me:pw@host\n"
    )
    reader = WarningReader(path)
    reader.update()
    assert [(each["level"], each["text"]) for each in reader.found] == [("warning", "odd\n  and so on"), ("error", "https://***@host")]
    moment = time.mktime(time.strptime("2026-01-02 03:04:08", "%Y-%m-%d %H:%M:%S"))
    assert [each["level"] for each in reader.since(moment)] == ["error"]


def test_of_very_many_the_first_are_kept_and_the_rest_counted(tmp_path):
    path = tmp_path / "hookline.log"
    path.write_text("".join(f"2026-01-02 03:04:06,000 WARNING number {number}\n  more\n" for number in range(MOST + 30)))
    reader = WarningReader(path)
    reader.update()
    assert (len(reader.found), reader.more) == (MOST, 30)
    assert reader.found[-1]["text"] == f"number {MOST - 1}\n  more"
