"""Save checkpoints beside training: copy them at the seam, write the copy in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from torch import Tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.formats import is_finite
from hookline.checkpoint.shards import split
from hookline.checkpoint.snapshot import Snapshot
from hookline.checkpoint.store import CheckpointStore
from hookline.checkpoint.writer import BackgroundWriter
from hookline.dist import World


class CleanUp(NamedTuple):
    """The work after a checkpoint was written: files to remove, then functions to call."""

    surplus: Sequence[str] = ()
    afterwards: Sequence[Callable[[], object]] = ()


NOTHING = CleanUp()


class Saver:
    """The way of checkpoints to a store, at once or in the background, one at a time.

    Args:
        store: The store for the files.
        background: Whether to write in a thread.
        report_failure: Called from the thread with a function that raises the error of a save.
    """

    def __init__(
        self,
        store: CheckpointStore,
        background: bool,
        report_failure: Callable[[Callable[[], object]], None],
    ) -> None:
        self._store = store
        self._background = background
        self._report_failure = report_failure
        self._snapshot = Snapshot()
        self._writer = BackgroundWriter()

    def save(
        self,
        checkpoint: Mapping[str, Any],
        names: Sequence[str],
        clean_up: CleanUp = NOTHING,
        postponed: Iterable[Tensor] = (),
        **about: Any,
    ) -> None:
        """Store a checkpoint under its names, then clean up.

        In the background, this waits for the previous save and returns when the copy is made.

        Args:
            checkpoint: The state.
            names: The names of the checkpoint.
            clean_up: The work after the write.
            postponed: Tensors that the thread copies. They must not change until `wait_for_copy`
                returns.
            about: Fields of the entry in the manifest.
        """
        if not self._background:
            self._write(checkpoint, names, clean_up, about)
            return
        self._writer.wait()
        copy = self._snapshot.take(checkpoint, postponed)
        self._writer.submit(lambda: self._in_background(copy, names, clean_up, about))

    def save_shards(
        self,
        checkpoint: Mapping[str, Any],
        names: Sequence[str],
        world: World,
        group: Any,
        clean_up: CleanUp = NOTHING,
        **about: Any,
    ) -> None:
        """Store a checkpoint of which each rank holds a part; all ranks call this.

        Args:
            checkpoint: The state with this rank's parts of the tensors.
            names: The names of the checkpoint.
            world: All ranks; rank 0 writes the file, each rank its parts.
            group: The process group of the background writes.
            clean_up: The work after the write.
            about: Fields of the entry in the manifest.
        """
        from hookline.checkpoint.shard_files import start_writing  # half a second of imports

        self._writer.wait()
        plain, shards = split(checkpoint)
        finite = is_finite([shard.to_local() for shard in shards.values()])
        about["finite"] = world.gather_text(str(finite)) == ["True"] * world.size
        directory = self._claim_directory(about["step"], world)
        written = start_writing(shards, self._store.directory / directory, group)
        copy = self._snapshot.take({**plain, "shards": directory}) if world.is_main else None
        self._writer.submit(
            lambda: self._commit_shards(written, copy, names, directory, clean_up, about)
        )
        if not self._background:
            self._writer.wait()

    def wait(self) -> None:
        """Return when everything is on disk; raise the error of a failed save."""
        self._writer.wait()

    def wait_for_copy(self) -> None:
        """Return when the thread has copied the tensors of the last save."""
        self._snapshot.rest.wait()

    def _claim_directory(self, step: int, world: World) -> str:
        """Return the directory for shards that rank 0 makes; raise on all ranks if it cannot."""
        name = ""
        failure: CheckpointError | None = None
        if world.is_main:
            try:
                name = self._store.claim_shards(step)
            except CheckpointError as error:
                failure = error
        name = world.gather_text(name)[0]
        if failure is not None:
            raise failure
        if not name:
            message = "not saved: rank 0 could not make a directory for the shards"
            raise CheckpointError(message, file=str(self._store.directory))
        return name

    def _in_background(
        self,
        copy: Mapping[str, Any],
        names: Sequence[str],
        clean_up: CleanUp,
        about: dict[str, Any],
    ) -> None:
        try:
            self._snapshot.rest.run()
            self._write(copy, names, clean_up, about)
        except BaseException:
            self._report_failure(self._writer.wait)
            raise

    def _commit_shards(
        self,
        written: Future[Any],
        copy: Mapping[str, Any] | None,
        names: Sequence[str],
        directory: str,
        clean_up: CleanUp,
        about: dict[str, Any],
    ) -> None:
        try:
            written.result()
            if copy is not None:
                about["parts"] = self._store.describe_shards(directory)
                self._write(copy, names, clean_up, about)
        except BaseException:
            if copy is not None:
                self._store.abandon_shards(directory)
            self._report_failure(self._writer.wait)
            raise

    def _write(
        self,
        checkpoint: Mapping[str, Any],
        names: Sequence[str],
        clean_up: CleanUp,
        about: dict[str, Any],
    ) -> None:
        self._store.save(checkpoint, names[0], links=names[1:], **about)
        if clean_up.surplus:
            self._store.remove(*clean_up.surplus)
        for function in clean_up.afterwards:
            function()
