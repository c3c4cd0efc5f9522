"""The halves of docs/from-lightning.md and docs/from-hugging-face.md that need these frameworks (```py) run.

The others (```python) run in `make test`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import BLOCK, DOCS, read

PAGES = ["from-lightning.md", "from-hugging-face.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_foreign_half_of_every_habit_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "snippet"}
    blocks = [text for language, text in BLOCK.findall(read(DOCS / page)) if language == "py"]
    assert len(blocks) >= 20
    for text in blocks:
        exec(compile(text, page, "exec"), names)  # noqa: S102  # our own document
