"""The `Checkpointer`, which writes checkpoints at seams and loads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.checkpoint import load_checkpoint, local_checkpoint, with_shards
from hookline.checkpoint.manifest import Entry
from hookline.checkpoint.parts import select_rank_state
from hookline.checkpoint.queue import CheckpointQueue
from hookline.checkpoint.resume_diff import hyperparameters
from hookline.checkpoint.weights import lacks_base, load_weights
from hookline.engine.run_state import capture, restore
from hookline.errors import HooklineError
from hookline.optim.saved_parts import frozen_parameters

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


class Checkpointer(CheckpointQueue):
    """The owner of checkpoints: it captures the state at seams, writes it and restores it.

    A hook that decides when to save calls `open` when a run begins. Until then `is_open` is False
    and a request for a named checkpoint raises.
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
        super().__init__(directory or runner.work_dir, runner.world)
        self.resume = resume
        self.load_from = load_from
        self.load_strict = load_strict
        self.initial_hyperparameters: Any = None  # of the optimizer, as the user set them
        self._runner = runner
        self._receivers: list[Callable[[dict[str, Any]], object]] = []

    def open(self, directory: str | Path, background: bool, excluded: Sequence[str] = ()) -> None:
        """Open the store in a directory; `excluded` names parts that are not saved."""
        report_failure = self._runner.loop.requests.call_at_next_seam
        self.open_store(directory, background, excluded, report_failure)

    def request(self, name: str, collective: bool = False) -> None:
        """Request a checkpoint file at the next seam."""
        if not self.is_open:
            raise HooklineError("no hook writes checkpoints here: register a CheckpointHook")
        self._runner.loop.requests.save(name, self.queue, collective)

    def request_snapshot(self, collective: bool = False) -> None:
        """Request a capture of the state at the next seam; hooks may add a file name there."""
        if self._runner.loop.requests.accepting:
            self._runner.loop.requests.save(None, self.queue, collective)

    def pass_next_to(self, receiver: Callable[[dict[str, Any]], object]) -> None:
        """Pass the checkpoint of the next seam to a function."""
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
        about = {"step": runner.iter, "epoch": runner.epoch, "metrics": dict(runner.metrics)}
        self.write_queued(checkpoint, runner.parallel.save_group, **about)

    def remember_hyperparameters(self) -> None:
        """Remember the optimizer's hyperparameters before hooks or a checkpoint change them."""
        if self.initial_hyperparameters is None:
            self.initial_hyperparameters = hyperparameters(self._runner.optimizer)
            self.initially_frozen = frozen_parameters(self._runner)

    def load_or_resume(self) -> None:
        """Resume from a checkpoint or load its weights, as `resume` and `load_from` request."""
        runner = self._runner
        checkpoint = None
        if self.resume == "auto":
            newest = self.find_newest()
            checkpoint = None if newest is None else self.load_entry(newest)
        elif self.resume is not None and runner.iter == 0:  # A later call continues.
            checkpoint = self.load(self.resume)
        if self.load_from is not None and runner.iter == 0 and lacks_base(checkpoint):
            self.load_weights(self.load(self.load_from))
        if checkpoint is None:
            return
        self.resume_from(checkpoint)
        if runner.loop.is_finished():
            runner.logger.info("this run is already finished: %s", runner.loop.natural_end())
        else:
            runner.logger.info("resumed at epoch %d, iteration %d", runner.epoch + 1, runner.iter)

    def resume_from(self, checkpoint: dict[str, Any]) -> None:
        """Restore the run to a checkpoint; training continues from there."""
        runner = self._runner
        checkpoint = select_rank_state(checkpoint, runner.world, runner.seed)
        restore(runner, checkpoint)
        runner.loop.mark_resumed(checkpoint)
        self.pass_to_hooks(checkpoint)

    def load_weights(self, checkpoint: dict[str, Any]) -> None:
        """Load only the weights of a checkpoint, and pass it to hooks."""
        runner = self._runner
        load_weights(runner.model, checkpoint, self.load_strict, runner.logger, self.frozen_base)
        self.pass_to_hooks(checkpoint)

    def pass_to_hooks(self, checkpoint: dict[str, Any]) -> None:
        """Call `after_load_checkpoint`, where hooks load their own parts."""
        self._runner.checkpoint = checkpoint
        self._runner.call_hook("after_load_checkpoint")
        self._runner.checkpoint = None

    def load_entry(self, entry: Entry) -> dict[str, Any]:
        """Load a checkpoint of the store."""
        return self._assemble(self.store.load(entry), self.store.directory)

    def load(self, path: str | Path) -> dict[str, Any]:
        """Load a checkpoint from a file or a URL."""
        with local_checkpoint(path) as file:
            return self._assemble(load_checkpoint(file), file.parent)

    def _assemble(self, checkpoint: dict[str, Any], directory: Path) -> dict[str, Any]:
        """Return a checkpoint with its sharded tensors, or this rank's parts of them."""
        parallel = self._runner.parallel
        return parallel.split_checkpoint(with_shards(checkpoint, directory, parallel.make_empty()))
