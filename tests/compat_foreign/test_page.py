"""The snippets of docs/foreign-callbacks.md that need the other frameworks (```py) run; the others (```python) run in `make test`."""

from __future__ import annotations

import os
import re

import pytest
from transformers import TrainerCallback, integrations, trainer_callback
from transformers.utils import notebook

from tests.compat_foreign.matrix import PAGE, written


def test_the_snippets_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(
        r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 3
    for text in blocks:
        exec(compile(text, PAGE.name, "exec"), names)  # noqa: S102  # our own document
    assert list((tmp_path / "runs" / "foreign" / "checkpoints").glob("*.ckpt"))
    assert (tmp_path / "runs" / "ignite" / "last.pth").exists()


@pytest.mark.skipif("HOOKLINE_WRITE_MATRIX" in os.environ, reason="it is being written")
def test_every_callback_of_transformers_is_in_the_matrix():
    found = [
        thing
        for module in (trainer_callback, integrations.integration_utils, notebook)
        for thing in vars(module).values()
    ]
    names = {
        thing.__name__
        for thing in found
        if isinstance(thing, type) and issubclass(thing, TrainerCallback)
    }
    names.remove("CallbackHandler")  # the Trainer's list of them
    assert len(names) >= 20
    assert not [name for name in names if f"| {name} |" not in written()]
