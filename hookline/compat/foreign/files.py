"""Write and remove the files of a foreign callback at the next seam."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.checkpoint import write_checkpoint
from hookline.engine import BaseRunner

if TYPE_CHECKING:
    from hookline.compat.foreign.hook import ForeignHook

Checkpoint = dict[str, Any]
Select = Callable[[Checkpoint], Checkpoint]  # returns the content of a file
Write = Callable[[Path, Checkpoint], object]  # writes it in the format of a framework


class Files:
    """The file operations that one callback requested since the last seam.

    They keep their order: a file is removed only after the files requested before it are written.
    """

    def __init__(self, hook: ForeignHook) -> None:
        self._hook = hook
        self._operations: list[Callable[[Checkpoint], object]] = []

    def save(self, path: str | Path, select: Select, write: Write | None = None) -> None:
        """Write a checkpoint to a path at the next seam.

        Args:
            path: The file, which is replaced in one step.
            select: Returns the content of the file from a checkpoint.
            write: Writes the content; in torch's format by default.
        """
        target = Path(path)

        def write_file(checkpoint: Checkpoint) -> None:
            content = select(checkpoint)
            if write is None:
                write_checkpoint(content, target)
            else:
                write(target, content)

        self._request(write_file)

    def remove(self, path: str | Path) -> None:
        """Remove a file at the next seam, after the operations requested before."""
        self._request(lambda checkpoint: Path(path).unlink(missing_ok=True))

    def settle(self, runner: BaseRunner) -> None:
        """Perform the pending operations now, because no seam follows."""
        if self._operations:
            runner.checkpointer.pass_next_to(self._perform)
            runner.checkpointer.save()

    def _request(self, operation: Callable[[Checkpoint], object]) -> None:
        self._operations.append(operation)
        self._hook.runner.request_save(write=self._perform)

    def _perform(self, checkpoint: Checkpoint) -> None:
        operations = self._operations
        self._operations = []
        if not self._hook.runner.is_main:
            return
        for operation in operations:
            operation(checkpoint)
