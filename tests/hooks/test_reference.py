"""The index of all hooks, for readers who do not know what a hook is called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hookline.cli.docs import BY_WORD
from hookline.engine import HOOKS
from hookline.hooks import LrUpdaterHook
from hookline.signature import parameters

REFERENCE = (Path(__file__).parents[2] / "docs" / "hooks-reference.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["csv", "warm-up", "warmup", "clipping", "accumulation", "mixed precision", "NaN"])
def test_a_word_that_no_hook_is_named_after_leads_to_a_hook(word):
    rows = [line for line in REFERENCE.splitlines() if line.startswith("|") and word.lower() in line.lower()]
    assert any("](hooks/" in row for row in rows)


@pytest.mark.parametrize("where", BY_WORD.values(), ids=list(BY_WORD))
def test_what_stands_under_a_word_is_there(where):
    classes = [HOOKS.get(name) for name in re.findall(r"\b[A-Z]\w+Hook\b", where)]
    for name in re.findall(r"`(\w+)\b", where):
        assert name in parameters(classes[0]).known


def test_every_schedule_has_a_warm_up():
    schedules = [cls for _, cls in HOOKS.items() if issubclass(cls, LrUpdaterHook) and cls.__module__.startswith("hookline.hooks")]
    assert all("warmup" in parameters(cls).known for cls in schedules)
