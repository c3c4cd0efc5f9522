from __future__ import annotations

import pytest

from hookline.config.hook_list import default_hook, short_name


@pytest.mark.parametrize(
    ("type_name", "short"),
    [
        ("EMAHook", "ema"),
        ("EarlyStoppingHook", "early_stopping"),
        ("IterTimerHook", "iter_timer"),
        ("my_project.hooks.PrintHook", "print"),
        ("LRSchedulerHook", "lr_scheduler"),
        ("Plain", "plain"),
    ],
)
def test_a_hook_has_a_short_name(type_name: str, short: str) -> None:
    assert short_name(type_name) == short


@pytest.mark.parametrize("key", ["iter_timer", "itertimer", "IterTimerHook", "iter_Timer"])
def test_a_default_hook_is_known_by_any_of_its_names(key: str) -> None:
    assert default_hook(key) == "IterTimerHook"


def test_another_hook_is_no_default() -> None:
    assert default_hook("ema") is None
