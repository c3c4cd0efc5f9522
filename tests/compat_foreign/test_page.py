"""The snippets of docs/foreign-callbacks.md that need the other frameworks (```py) run; the others (```python) run in `make test`."""

from __future__ import annotations

import re

from tests.compat_foreign.matrix import PAGE


def test_the_snippets_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for text in blocks:
        exec(compile(text, PAGE.name, "exec"), names)  # noqa: S102  # our own document
    assert list((tmp_path / "runs" / "foreign" / "checkpoints").glob("*.ckpt"))
    assert (tmp_path / "runs" / "ignite" / "last.pth").exists()
