"""Files that a foreign callback wants written or removed: done at the seam, in its order, each replaced in one step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.checkpoint import write_checkpoint
from hookline.engine import BaseRunner
from hookline.engine.seams import save

if TYPE_CHECKING:
    from hookline.compat.foreign.hook import ForeignHook

Content = Callable[[dict[str, Any]], dict[str, Any]]  # what of a checkpoint goes into a file
Fill = Callable[[Path, dict[str, Any]], object]  # writes a checkpoint to a path in a format of its own


class Files:
    """What one callback asked for since the last seam. A removal waits for the saves before it: no good file goes too early."""

    def __init__(self, hook: ForeignHook) -> None:
        self._hook = hook
        self._asked: list[Callable[[dict[str, Any]], object]] = []

    def save(self, path: str | Path, content: Content, fill: Fill | None = None) -> None:
        """Have a checkpoint written to a path at the next seam: in torch's format, or by `fill`."""
        write = fill or (lambda path, checkpoint: write_checkpoint(checkpoint, path))
        self._ask(lambda checkpoint: write(Path(path), content(checkpoint)))

    def remove(self, path: str | Path) -> None:
        """Have a file removed, after what was asked for before."""
        self._ask(lambda checkpoint: Path(path).unlink(missing_ok=True))

    def settle(self, runner: BaseRunner) -> None:
        """Do at once what no seam will come for any more."""
        if self._asked:
            save(runner, [self._do])

    def _ask(self, operation: Callable[[dict[str, Any]], object]) -> None:
        self._asked.append(operation)
        self._hook.runner.request_save(write=self._do)

    def _do(self, checkpoint: dict[str, Any]) -> None:
        asked, self._asked = self._asked, []
        if self._hook.runner.is_main:
            for operation in asked:
                operation(checkpoint)
