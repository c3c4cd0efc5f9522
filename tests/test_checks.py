from __future__ import annotations

import pytest

from tests.checks import all_failures


def check_numbers() -> None:
    with all_failures() as check:
        for number in range(4):
            with check(f"number {number}"):
                assert number % 2 == 0


def test_every_failure_is_reported_with_its_subject() -> None:
    with pytest.raises(AssertionError) as caught:
        check_numbers()
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 failed:"
    assert [line.partition(":")[0] for line in lines if "number" in line] == [
        "number 1",
        "number 3",
    ]


def test_nothing_is_raised_if_every_check_passes() -> None:
    with all_failures() as check, check("one"):
        assert True
