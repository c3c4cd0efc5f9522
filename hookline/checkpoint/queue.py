"""The files of a run's next checkpoint: their names, and the store that they go to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from hookline.checkpoint.manifest import Entry, find
from hookline.checkpoint.mirror import Mirror
from hookline.checkpoint.names import safe_name
from hookline.checkpoint.saver import CleanUp, Saver
from hookline.checkpoint.store import CheckpointStore
from hookline.checkpoint.trainable import TAG, FrozenBase
from hookline.dist import World
from hookline.remote import RemoteDirectory


class CheckpointQueue:
    """The names of the next checkpoint, which is written under all of them.

    Args:
        directory: The directory of the checkpoints, until `open_store` sets another one.
        world: All ranks; rank 0 writes the files, and chooses the one to resume from.

    Attributes:
        store: The files.
        is_open: Whether checkpoints can be written.
        excluded: Keys that are left out of the files.
        names: Names of the next file. The first one is written, the others are links to it.
        surplus: Files to remove once the next one is written.
        afterwards: Functions to call after that, in the thread that writes.
        initially_frozen: The names of the parameters that the user has frozen.
        frozen_base: The frozen weights of the model, for checkpoints of its trained part.
        reduce: Leaves the frozen weights out of a checkpoint, if only trained ones are saved.
        postponed: Returns the tensors that may be copied after the seam, because only the
            optimizer's step changes them. It must be preceded by `wait_for_copy`.
        mirror: The copy of the directory in object storage, if there is one.
    """

    def __init__(self, directory: str | Path, world: World) -> None:
        self.store = CheckpointStore(directory)
        self.is_open = False
        self.excluded: frozenset[str] = frozenset()
        self.names: list[str] = []
        self.surplus: list[str] = []
        self.afterwards: list[Callable[[], object]] = []
        self.initially_frozen: list[str] = []
        self.frozen_base = FrozenBase()
        self.reduce: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
        self.postponed: Callable[[], Iterable[Tensor]] = tuple
        self.mirror: Mirror | None = None
        self._newest: Entry | None = None
        self._world = world
        self._saver: Saver | None = None

    def open_store(
        self,
        directory: str | Path,
        background: bool,
        excluded: Sequence[str],
        report_failure: Callable[[Callable[[], object]], None],
    ) -> None:
        """Open the store in a directory.

        Args:
            directory: The directory of the checkpoints.
            background: Whether to write in a thread.
            excluded: Keys to leave out of the files.
            report_failure: Called from the thread with a function that raises the error of a save.
        """
        self.store = CheckpointStore(directory)
        self._saver = Saver(self.store, background, report_failure)
        self.excluded = frozenset(excluded)
        self.reduce = None
        self.postponed = tuple
        self.names = []
        self.surplus = []
        self.afterwards = []
        self.is_open = True
        if self._world.is_main:
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

    def open_mirror(self, url: str, work_dir: Path, restore: bool) -> None:
        """Open the copy of a work directory in object storage, on rank 0.

        Args:
            url: The place of the copy.
            work_dir: The work directory.
            restore: Whether to bring the copied checkpoints to the store first.
        """
        self.mirror = Mirror(RemoteDirectory(url), work_dir)
        if restore:
            self.mirror.restore(self.store)

    def start_mirror(self) -> None:
        """Start to copy the directory to its mirror, beside the training."""
        if self.mirror is not None:
            resumed_from = None if self._newest is None else self._newest.sha256
            self.mirror.start(self.store, resumed_from)

    def settle_mirror(self) -> None:
        """Copy the state at the end of a run to the mirror, and wait for that."""
        if self.mirror is not None:
            self.mirror.settle()

    def finish_mirror(self, error: BaseException | None) -> None:
        """Copy the final state to the mirror, after all hooks have written their files.

        Args:
            error: The error that ended the run. After an interrupt, nothing is waited for.
        """
        mirror, self.mirror = self.mirror, None
        if mirror is not None:
            mirror.close(wait=not isinstance(error, (SystemExit, KeyboardInterrupt)))

    def wait(self) -> None:
        """Return when everything is on disk; raise the error of a failed save."""
        if self._saver is not None:
            self._saver.wait()

    def wait_for_copy(self) -> None:
        """Return when the tensors of the last save are copied and may change."""
        if self._saver is not None:
            self._saver.wait_for_copy()

    def queue(self, name: str) -> None:
        """Add a name for the next checkpoint: `last` or `best_accuracy`."""
        file = f"{safe_name(name.removesuffix('.pth'))}.pth"
        if file not in self.names:
            self.names.append(file)

    def write_queued(self, checkpoint: Mapping[str, Any], shard_group: Any, **about: Any) -> None:
        """Hand a checkpoint to the background writer, under the queued names.

        Args:
            checkpoint: The captured state.
            shard_group: The process group in which each rank writes its part; None if rank 0
                writes everything.
            about: Fields of the entry in the manifest.
        """
        assert self._saver is not None
        names, self.names = self.names, []
        if self.mirror is not None:
            self.afterwards.append(self.mirror.notify)
        clean_up = CleanUp(self.surplus, self.afterwards)
        self.surplus = []
        self.afterwards = []
        content = {key: value for key, value in checkpoint.items() if key not in self.excluded}
        if shard_group is not None:
            world = self._world
            self._saver.save_shards(content, names, world, shard_group, clean_up, **about)
        elif self._world.is_main:
            if self.reduce is not None:
                content = self.reduce(content)
                about["tags"] = [TAG]
            self._saver.save(content, names, clean_up, self.postponed(), **about)

    def find_newest(self) -> Entry | None:
        """Return the newest intact checkpoint; rank 0 chooses for all. None if there is none."""
        is_main = self._world.is_main
        if is_main and self.is_open:
            self.store.adopt()
        found = self.store.latest() if is_main else None
        name = self._world.broadcast_str("" if found is None else found.name)
        if name and found is None:
            found = find(name, self.store.entries())
        self._newest = found
        return found
