"""The position in the training data: captured for checkpoints, restored on resume.

Each kind of loader has its own way to find a position again:

- a loader of Hookline computes its batches from seed, epoch and position;
- a DataLoader with a map-style dataset draws its indices again (`ReplayPosition`);
- a loader with `state_dict` uses its own state (`StatePosition`), and so does a stream
  (`StreamPosition`);
- every other loader is read again from the beginning of the epoch (`RereadPosition`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch.utils.data import DataLoader, IterableDataset

from hookline.data.protocols import (
    PositionedLoader,
    has_state,
    is_positioned,
    length_of,
    set_loader_epoch,
)
from hookline.data.replay import ReplayPosition
from hookline.data.reread import RereadPosition
from hookline.data.stateful import StatePosition, StreamPosition, keeps_position
from hookline.data.torch_samplers import stateful_sampler
from hookline.errors import ConfigError, Suggestion
from hookline.rng import restore_rng, rng_state

log = logging.getLogger(__name__)

__all__ = ["DataPosition", "length_of", "set_loader_epoch"]

READ_AGAIN = (
    "after an interruption, the epoch is read again from its beginning and the batches already "
    "used are skipped, which is exact if it yields the same ones"
)
ADVICE_FOR_RANKS = (
    "resume with the same number of ranks, or from a checkpoint at the end of an epoch; a loader "
    "of make_loader continues anywhere with any number"
)


class LoaderPosition(Protocol):
    """The position in the batches of one loader.

    Attributes:
        epoch: The current epoch.
        batches_done: Batches before the one at which `begin_epoch` begins.
        announcement: A warning before training; None if a resume is exact and cheap.
        is_shared: Whether the state is the same on all ranks and fits any number of them.
    """

    announcement: str | None
    is_shared: bool

    @property
    def epoch(self) -> int: ...

    @property
    def batches_done(self) -> int: ...

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        ...

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""

    def state_dict(self, batches_done: int) -> Any:
        """Return the position after a number of batches of the epoch."""

    def load_state_dict(self, state: Any) -> None:
        """Go to a position."""


@dataclass
class _Resumed:
    """A loader whose position was restored, and its sampler before that."""

    loader: Any
    state: Any
    sampler: Any
    error: ConfigError | None = None

    def undo(self) -> None:
        """Give the loader its own seed back: the position is that of another one."""
        if self.sampler is not None:
            self.loader.sampler = self.sampler


class DataPosition:
    """Where a run is in its training data."""

    def __init__(self) -> None:
        self._loader: Any = None
        self._position: LoaderPosition | None = None
        self._is_placed = False  # a resume has put the loader into the current epoch
        self._resumed: _Resumed | None = None  # from a resume until its epoch is opened
        # The state and the random numbers when the run stopped.
        self._left: tuple[Any, dict[str, Any]] | None = None
        self._random_numbers: dict[str, Any] | None = None

    def of(self, loader: Any) -> LoaderPosition:
        """Return the position in a loader."""
        if self._position is None or self._loader is not loader:
            self._loader = loader
            self._position = find_position(loader)
        return self._position

    def open_epoch(self, loader: Any, epoch: int, batches_done: int) -> Iterator[Any]:
        """Return the batches that an epoch still has.

        If a hook has replaced the loader since a resume, the position of the new one is restored.
        """
        resumed, self._resumed = self._resumed, None
        if resumed is not None and resumed.loader is not loader:
            self._is_placed = False
            resumed.undo()
            if batches_done:
                self._place(loader, resumed.state, epoch, batches_done)
        elif resumed is not None and resumed.error is not None:
            raise resumed.error
        position = self.of(loader)
        if batches_done == 0 and not self._is_placed:
            position.set_epoch(epoch)
        self._is_placed = False
        return position.begin_epoch()

    def state(self, loader: Any, batches_done: int) -> Any:
        """Return the state after a number of batches."""
        return None if loader is None else self.of(loader).state_dict(batches_done)

    def restore(self, loader: Any, state: Any, epoch: int, batches_done: int) -> int:
        """Go to the first batch that was not trained on.

        Args:
            loader: The loader.
            state: Its state from the checkpoint, if it had one.
            epoch: The epoch of the checkpoint.
            batches_done: Batches of the epoch before the checkpoint.

        Returns:
            The batches before the position. It differs from `batches_done` if the batch size has
            changed since the checkpoint.
        """
        sampler = getattr(loader, "sampler", None) if is_positioned(loader) else None
        self._resumed = _Resumed(loader, state, sampler)
        try:
            self._place(loader, state, epoch, batches_done)
        except ConfigError as error:
            self._resumed.error = error  # A hook may still replace the loader before the epoch.
            return batches_done
        return self.of(loader).batches_done if batches_done else 0

    def _place(self, loader: Any, state: Any, epoch: int, batches_done: int) -> None:
        position = self.of(loader)
        if state is None and batches_done:
            position = self._position = RereadPosition(loader, READ_AGAIN)
            state = {"batches": batches_done}
        position.set_epoch(epoch)  # first: the state is a position in the epoch
        if state is not None:
            position.load_state_dict(state)
        self._is_placed = position.epoch == epoch
        if self.batches_to_reread:
            log.warning(
                "%s keeps no position: %d batches of this epoch are read again and skipped",
                type(loader).__name__, self.batches_to_reread,
            )  # fmt: skip

    def leave(self, loader: Any, batches_done: int) -> None:
        """Remember the position and the random numbers when a run stops."""
        self._left = (self.state(loader, batches_done), rng_state())

    def return_to(self, loader: Any, epoch: int, batches_done: int) -> None:
        """Go back to where the run stopped or failed, if it has the same loader."""
        is_same = batches_done > 0 and self._loader is loader
        if self._left is not None:
            state, self._random_numbers = self._left
            self._left = None
        elif is_same:  # An error ended the run inside an iteration or an evaluation.
            state = self.state(loader, batches_done)
        if is_same:
            self.restore(loader, state, epoch, batches_done)

    def restore_random_numbers(self) -> None:
        """Restore the random numbers after `return_to`, once: opening the data may draw some."""
        if self._random_numbers is not None:
            restore_rng(self._random_numbers)
            self._random_numbers = None

    def divide(self, loader: Any, state: Any, ranks_then: int, ranks_now: int) -> Any:
        """Return the state that a rank can use after the number of ranks has changed.

        Raises:
            ConfigError: If the run was inside an epoch and the loader cannot divide the rest of it.
        """
        if self.of(loader).is_shared or not isinstance(state, Mapping) or "samples" in state:
            return state
        if state.get("batches"):
            raise ConfigError(
                f"cannot continue inside an epoch with {ranks_now} ranks: the checkpoint was "
                f"written by {ranks_then}, and each kept its own position in the data",
                component="train_loader",
                value=type(loader).__name__,
                suggestion=Suggestion(advice=ADVICE_FOR_RANKS),
            )
        return None

    @property
    def batches_to_reread(self) -> int:
        """Batches that a resumed run reads again and skips."""
        position = self._position
        if not isinstance(position, RereadPosition) or position.announcement is None:
            return 0
        return position.batches_done


def find_position(loader: Any) -> LoaderPosition:
    """Return the position in a loader, of the kind that fits it."""
    if hasattr(loader, "make_position"):
        position: LoaderPosition = loader.make_position()
        return position
    if is_positioned(loader):
        return ComputedPosition(loader)
    dataset = getattr(loader, "dataset", None)
    is_stream = isinstance(dataset, IterableDataset)
    if _is_torch_loader(loader) and not is_stream and not has_state(dataset):
        return ReplayPosition(loader)
    in_process = getattr(loader, "num_workers", None) == 0
    if is_stream and not keeps_position(dataset):
        return RereadPosition(loader, f"its stream has no position; {READ_AGAIN}", in_process)
    if has_state(loader):
        return StatePosition(loader)
    if is_stream and in_process and has_state(dataset):
        return StreamPosition(loader)
    if is_stream:
        advice = "use num_workers=0 or torchdata's StatefulDataLoader"
        reason = f"the position of its stream is out of reach in worker processes ({advice})"
        return RereadPosition(loader, f"{reason}; {READ_AGAIN}")
    if isinstance(loader, Sequence):
        return RereadPosition(loader)
    if isinstance(loader, Iterator):
        return RereadPosition(loader, f"it can be read only once; {READ_AGAIN}")
    announcement = getattr(loader, "announcement", f"it has no state_dict; {READ_AGAIN}")
    return RereadPosition(loader, announcement)


def check_partial_epochs(loader: Any, component: str) -> None:
    """Raise if a loader cannot begin its next epoch before the current one is read to its end.

    Its state may then be that of the unfinished epoch.

    Raises:
        ConfigError: If the loader, its sampler or its stream has `state_dict`.
    """
    position = find_position(loader)
    has_own_state = isinstance(position, (StatePosition, StreamPosition))
    if isinstance(position, ReplayPosition):
        has_own_state = stateful_sampler(loader) is not None
    if has_own_state:
        raise ConfigError(
            "its epochs cannot be cut short, because it keeps its own position",
            component=component,
            value=type(loader).__name__,
            suggestion=Suggestion(advice="use fewer samples in its dataset"),
        )


class ComputedPosition:
    """The position in a loader of Hookline, which begins at any batch."""

    announcement: str | None = None
    is_shared = True

    def __init__(self, loader: PositionedLoader) -> None:
        self._loader = loader

    @property
    def epoch(self) -> int:
        return self._loader.epoch

    @property
    def batches_done(self) -> int:
        return self._loader.batches_done

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        return iter(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self._loader.set_epoch(epoch)

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the position after a number of batches; only the run knows how far it is."""
        return self._loader.state_dict(batches_done)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position."""
        if "samples" not in state and state.get("batches"):
            raise ConfigError(
                "cannot continue inside an epoch: the checkpoint is of a DataLoader on one rank, "
                "whose order was drawn by its sampler and is not divided among ranks",
                component="train_loader",
                value=state.get("kind"),
                suggestion=Suggestion(advice=ADVICE_FOR_RANKS),
            )
        if "samples" in state:
            self._loader.load_state_dict(state)


def _is_torch_loader(loader: Any) -> bool:
    """Return whether a loader reads batches as DataLoader does; a subclass may do otherwise."""
    if type(loader) is DataLoader:
        return True
    torchdata = sys.modules.get("torchdata.stateful_dataloader")
    return torchdata is not None and type(loader) is torchdata.StatefulDataLoader
