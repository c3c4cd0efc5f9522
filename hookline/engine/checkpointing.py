"""Write checkpoints at seams, and read them back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.checkpoint import CheckpointStore, Saver, load_checkpoint, safe_name, with_shards
from hookline.checkpoint.manifest import Entry, find
from hookline.checkpoint.resume_diff import hyperparameters
from hookline.checkpoint.weights import load_weights
from hookline.engine.run_state import capture, restore, select_rank_state
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


class Checkpointer:
    """Writes checkpoints and reads them: the names for the next seam, the snapshot, the store.

    A hook that decides when to save calls `open` when a run begins. Until then `is_open` is False
    and requests for named checkpoints are errors.

    Args:
        runner: The run.
        directory: Of the checkpoints; the runner's work directory by default.
        resume: A checkpoint to resume from, or `auto` for the newest one.
        load_from: A checkpoint whose weights a new run begins with.
        load_strict: Raise if these weights do not fit the model exactly.

    Attributes:
        excluded: Keys that are left out of the files.
        names: Names of the next file. The first one is written, the others are links to it.
        surplus: Files to remove once the next one is written.
        initial_hyperparameters: Those of the optimizer, as the user gave them.
    """

    def __init__(
        self,
        runner: BaseRunner,
        directory: str | Path | None = None,
        *,
        resume: str | Path | None = None,
        load_from: str | Path | None = None,
        load_strict: bool = True,
    ) -> None:
        self.store = CheckpointStore(directory or runner.work_dir)
        self.is_open = False
        self.resume = resume
        self.load_from = load_from
        self.load_strict = load_strict
        self.excluded: frozenset[str] = frozenset()
        self.names: list[str] = []
        self.surplus: list[str] = []
        self.initial_hyperparameters: Any = None
        self._runner = runner
        self._saver: Saver | None = None
        self._receivers: list[Callable[[dict[str, Any]], object]] = []

    def open(self, directory: str | Path, background: bool, excluded: Sequence[str] = ()) -> None:
        """Use a directory, and write in a background thread or not."""
        runner = self._runner
        self.store = CheckpointStore(directory)
        self._saver = Saver(self.store, background, runner.requests.call_at_next_seam)
        self.excluded = frozenset(excluded)
        self.names = []
        self.surplus = []
        self.is_open = True
        if runner.is_main:
            self.store.prepare()

    def close(self, wait: bool = True) -> None:
        """Finish the writing, raise its error if there was one, and release the directory."""
        self.is_open = False
        if self._saver is None:
            return
        try:
            if wait:
                self._saver.wait()
        finally:
            self._saver = None
            self.store.unlock()

    def wait(self) -> None:
        """Return when everything is on disk; raise what went wrong."""
        if self._saver is not None:
            self._saver.wait()

    def request(self, name: str, collective: bool = False) -> None:
        """Request a file of the state at the next seam."""
        if not self.is_open:
            raise HooklineError("no hook writes checkpoints here: register a CheckpointHook")
        self._runner.requests.save(name, self.queue, collective)

    def request_snapshot(self, collective: bool = False) -> None:
        """Request that the state is captured at the next seam, for `before_save_checkpoint`."""
        if self._runner.requests.accepting:
            self._runner.requests.save(None, self.queue, collective)

    def queue(self, name: str) -> None:
        """Add a name for the checkpoint of the next seam: `last` or `best_accuracy`."""
        file = f"{safe_name(name.removesuffix('.pth'))}.pth"
        if file not in self.names:
            self.names.append(file)

    def pass_next_to(self, receiver: Callable[[dict[str, Any]], object]) -> None:
        """Call a function with the checkpoint of the next seam."""
        if receiver not in self._receivers:
            self._receivers.append(receiver)

    def save(self) -> None:
        """Capture the state, let hooks add to it, and write it under the queued names."""
        runner = self._runner
        runner.checkpoint = capture(runner)
        try:
            runner.call_hook("before_save_checkpoint")
            receivers, self._receivers = self._receivers, []
            for receiver in receivers:
                receiver(runner.checkpoint)
            if self.names:
                self.write(runner.checkpoint)
            runner.call_hook("after_save_checkpoint")
        finally:
            runner.checkpoint = None

    def write(self, checkpoint: Mapping[str, Any]) -> None:
        """Hand a captured checkpoint to the background writer."""
        runner = self._runner
        assert self._saver is not None
        names, self.names = self.names, []
        surplus, self.surplus = self.surplus, []
        content = {key: value for key, value in checkpoint.items() if key not in self.excluded}
        about: dict[str, Any] = {
            "step": runner.iter,
            "epoch": runner.epoch,
            "metrics": dict(runner.metrics),
            "surplus": surplus,
        }
        if runner.parallel.mesh is not None:
            group = runner.parallel.save_group
            self._saver.save_shards(content, names, runner.world, group, **about)
        elif runner.is_main:
            self._saver.save(content, names, **about)

    def remember_hyperparameters(self) -> None:
        """Keep the optimizer's hyperparameters before hooks or a checkpoint change them."""
        if self.initial_hyperparameters is None:
            self.initial_hyperparameters = hyperparameters(self._runner.optimizer)

    def load_or_resume(self) -> None:
        """Resume, or load given weights, as configured."""
        runner = self._runner
        checkpoint = None
        if self.resume == "auto":
            newest = self.find_newest()
            checkpoint = None if newest is None else self.load_entry(newest)
        elif self.resume is not None:
            checkpoint = self.load(self.resume)
        if checkpoint is None:
            if self.load_from is not None:
                self.load_weights(self.load(self.load_from))
            return
        self.resume_from(checkpoint)
        if runner.loop.is_finished():
            runner.logger.info("this run is already finished: %s", runner.loop.natural_end())
        else:
            runner.logger.info("resumed at epoch %d, iteration %d", runner.epoch + 1, runner.iter)

    def resume_from(self, checkpoint: dict[str, Any]) -> None:
        """Put the run where a checkpoint was taken; the next epoch, or its rest, follows."""
        runner = self._runner
        checkpoint = select_rank_state(runner, checkpoint)
        restore(runner, checkpoint)
        runner.loop.mark_resumed(checkpoint)
        self.pass_to_hooks(checkpoint)

    def load_weights(self, checkpoint: dict[str, Any]) -> None:
        """Load only the weights of a checkpoint; hooks load their part of it."""
        runner = self._runner
        load_weights(runner.model, checkpoint, self.load_strict, runner.logger)
        self.pass_to_hooks(checkpoint)

    def pass_to_hooks(self, checkpoint: dict[str, Any]) -> None:
        """Call `after_load_checkpoint`: hooks load their part of a checkpoint."""
        self._runner.checkpoint = checkpoint
        self._runner.call_hook("after_load_checkpoint")
        self._runner.checkpoint = None

    def find_newest(self) -> Entry | None:
        """Return the newest intact checkpoint; rank 0 chooses for all. None if there is none."""
        world = self._runner.world
        if world.is_main and self.is_open:
            self.store.adopt()
        found = self.store.latest() if world.is_main else None
        name = world.broadcast_str("" if found is None else found.name)
        if name and found is None:
            found = find(name, self.store.entries())
        return found

    def load_entry(self, entry: Entry) -> dict[str, Any]:
        """Load a checkpoint of the store."""
        return self._assemble(self.store.load(entry), self.store.directory)

    def load(self, path: str | Path) -> dict[str, Any]:
        """Load a checkpoint from a file."""
        return self._assemble(load_checkpoint(path), Path(path).parent)

    def _assemble(self, checkpoint: dict[str, Any], directory: Path) -> dict[str, Any]:
        """Return a checkpoint with its sharded tensors, or this rank's parts of them."""
        parallel = self._runner.parallel
        return parallel.split_checkpoint(with_shards(checkpoint, directory, parallel.make_empty()))
