"""The tables of the guides state the defaults that the hooks have."""

from __future__ import annotations

import json
import re

import pytest

from hookline.engine import HOOKS
from hookline.signature import parameters
from tests.docs.pages import DOCS, read

ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| (.+?) \| (.+?) \|$", re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "hook", "column"),
    [
        ("resume.md", "CheckpointHook", 2),
        ("averaging.md", "EMAHook", 2),
        ("logging.md", "LoggerHook", 3),
    ],
)
def test_a_table_states_the_defaults_of_a_hook(page: str, hook: str, column: int) -> None:
    known = parameters(HOOKS.get(hook)).known
    wrong = []
    count = 0
    for row in ROW.finditer(read(DOCS / page)):
        for name in re.findall(r"\w+", row[1]):
            if name in known:
                count += 1
                if row[column].strip("`") != written(known[name].default):
                    wrong.append((name, row[column], known[name].default))
    assert wrong == []
    assert count >= 5


def written(default: object) -> str:
    return default if isinstance(default, str) else json.dumps(default)
