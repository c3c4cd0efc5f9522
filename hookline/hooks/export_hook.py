"""Export the trained model at the end of a run."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hookline.batches import named_loaders
from hookline.checkpoint import Entry
from hookline.checkpoint.best_files import find_best_names
from hookline.data.peek import can_peek, peeking
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import require_choice

Format = Literal["safetensors", "pt2", "onnx"]


@HOOKS.register()
@dataclass
class ExportHook(BaseHook):
    """Export the best or the last checkpoint at the end of training, and verify the files.

    Averaged weights are exported if there are any. Each file is compared with the model on a batch
    of the validation data; a difference ends the run with an error that names the first layer with
    one. A model card is written beside the files.

    Args:
        formats: Formats to write: `safetensors`, `pt2` (`torch.export`), `onnx`.
        checkpoint: `best` or `last`. Without a best checkpoint, the last one is exported.
        out_dir: Directory of the files. None means `export` in the work directory.

    Example:
        ```yaml
        hooks:
          - {type: ExportHook, formats: [safetensors, pt2]}
        ```
    """

    formats: Sequence[Format] = ("safetensors", "pt2", "onnx")
    checkpoint: Literal["best", "last"] = "best"
    out_dir: str | None = None

    priority = Priority.HIGH  # Late in `after_train`, when the checkpoints are complete.
    ranks = "main"

    def __post_init__(self) -> None:
        for each in self.formats:
            require_choice(type(self).__name__, "formats", each, ("safetensors", "pt2", "onnx"))

    def after_train(self, runner: BaseRunner) -> None:
        from hookline.export.checkpoints import export_checkpoint

        runner.checkpointer.wait()
        store = runner.checkpointer.store
        name = self._choose(store.entries())
        problem = self._problem(runner, name)
        if name is None or problem:
            runner.logger.warning("%s: nothing was exported: %s", self.name, problem)
            return
        exported = export_checkpoint(
            copy.deepcopy(runner.model).cpu(),
            store.load(name),
            name,
            _first_batch(runner.val_loader),
            copy.deepcopy(dict(runner.evaluation.metrics)),
            Path(self.out_dir or runner.work_dir / "export"),
            self.formats,
        )
        paths = ", ".join(str(path) for path in exported.files.values())
        runner.logger.info("exported %s: %s", name, paths)

    def _problem(self, runner: BaseRunner, name: str | None) -> str:
        """Return why nothing can be exported; empty text if it can."""
        if name is None:
            return "there is no checkpoint"
        if runner.parallel.mesh is not None:
            return "the model is sharded; use hookline ckpt consolidate and hookline export"
        return "" if named_loaders(runner.val_loader) else "no validation data to verify it with"

    def _choose(self, entries: list[Entry]) -> str | None:
        """Return the name of the checkpoint to export; the newest best one, or else the last."""
        names = [name for entry in entries for name in entry.names]
        best = find_best_names(names)
        if self.checkpoint == "best" and best:
            return best[-1]
        return "last.pth" if "last.pth" in names else None


def _first_batch(loader: Any) -> Any:
    """Return the first batch of the validation data, without a trace where that is possible."""
    first = next(iter(named_loaders(loader).values()))
    if not can_peek(first):
        return next(iter(first))
    with peeking(first, 1) as batches:
        return next(batches)
