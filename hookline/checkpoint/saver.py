"""Saving beside training: one copy into memory that is kept, and a thread that writes it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from torch import Tensor

from hookline.checkpoint.snapshot import Snapshot
from hookline.checkpoint.store import CheckpointStore
from hookline.checkpoint.writer import BackgroundWriter


class Saver:
    """Hands checkpoints to a store: at once, or in the background, with one save and one extra copy at a time.

    `report` is called, from the thread, with a function that raises the error of a save that failed there.
    """

    def __init__(self, store: CheckpointStore, background: bool, report: Callable[[Callable[[], object]], None]) -> None:
        self._store = store
        self._background = background
        self._report = report
        self._snapshot = Snapshot()
        self._writer = BackgroundWriter()

    def save(
        self,
        checkpoint: Mapping[str, Any],
        names: Sequence[str],
        *,
        surplus: Sequence[str] = (),
        later: Iterable[Tensor] = (),
        **about: Any,
    ) -> None:
        """Store a checkpoint under its names, then remove what is surplus. Tensors in `later` may be copied until `settle`."""
        if not self._background:
            self._write(checkpoint, names, surplus, about)
            return
        self._writer.wait()
        copy = self._snapshot.take(checkpoint, later)
        self._writer.submit(lambda: self._in_background(copy, names, surplus, about))

    def save_shards(
        self,
        plain: Mapping[str, Any],
        shards: Mapping[str, Tensor],
        names: Sequence[str],
        *,
        directory: str,
        group: Any,
        main: bool,
        **rest: Any,
    ) -> None:
        """The same for a checkpoint of which each process has a part; all of them call this, and the main one writes the file."""
        from hookline.checkpoint.shard_files import start_writing  # half a second of imports

        self._writer.wait()
        written = start_writing(shards, self._store.directory / directory, group)
        copy = self._snapshot.take({**plain, "shards": directory}) if main else {}
        self._snapshot.complete()
        self._writer.submit(lambda: self._commit_shards(written, copy if main else None, names, directory, rest))
        if not self._background:
            self._writer.wait()

    def settle(self) -> None:
        """Return when the snapshot is complete, so that the tensors may change."""
        self._snapshot.complete()

    def wait(self) -> None:
        """Return when everything is on disk; raise what went wrong."""
        self._writer.wait()

    def _in_background(self, copy: Mapping[str, Any], names: Sequence[str], surplus: Sequence[str], about: dict[str, Any]) -> None:
        try:
            self._snapshot.complete()
            self._write(copy, names, surplus, about)
        except BaseException:
            self._report(self._writer.wait)
            raise

    def _commit_shards(
        self, written: Future[Any], copy: Mapping[str, Any] | None, names: Sequence[str], directory: str, rest: dict[str, Any]
    ) -> None:
        try:
            written.result()
            if copy is not None:
                surplus = rest.pop("surplus")
                self._write(copy, names, surplus, {**rest, "parts": self._store.describe_shards(directory)})
        except BaseException:
            self._report(self._writer.wait)
            raise

    def _write(self, checkpoint: Mapping[str, Any], names: Sequence[str], surplus: Sequence[str], about: dict[str, Any]) -> None:
        self._store.save(checkpoint, names[0], links=names[1:], **about)
        if surplus:
            self._store.remove(*surplus)
