"""Several loaders as one: read together, in turns, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, cycle, repeat
from typing import Any, Literal, get_args

from hookline.data.generators import END
from hookline.data.position import LoaderPosition, check_partial_epochs, find_position
from hookline.data.protocols import length_of, set_default_seed
from hookline.errors import ConfigError, require_choice

CombinedMode = Literal["max_size", "min_size", "sequential", "interleave"]


class CombinedLoader:
    """Several loaders that yield batches by name, as `{"labeled": …, "unlabeled": …}`.

    Args:
        loaders: The loaders by name. Each must have a length.
        mode: With `max_size`, a batch has one of each loader, and an epoch is as long as the
            longest; shorter ones begin again. With `min_size`, it is as long as the shortest.
            With `sequential`, a batch has one of one loader, which are read one after the other.
            With `interleave`, they take turns, until one whose turn it is has ended.
        ratios: For `interleave`, the batches of each loader in a turn; 1 by default.

    Raises:
        ConfigError: If a loader has no length or no batches, or the ratios do not fit.
    """

    def __init__(
        self,
        loaders: Mapping[str, Any],
        mode: CombinedMode = "max_size",
        ratios: Mapping[str, int] | None = None,
    ) -> None:
        require_choice("CombinedLoader", "mode", mode, get_args(CombinedMode))
        if not isinstance(loaders, Mapping):
            raise _error("'loaders' must be a dict of loaders by name", "loaders")
        self.loaders = dict(loaders)
        self.mode = mode
        self.lengths = {name: _length(name, loader) for name, loader in self.loaders.items()}
        self.ratios = _check_ratios(self.loaders, mode, ratios)
        if not self.loaders:
            raise _error("needs at least one loader", "loaders")

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        lengths = self.lengths
        if self.mode == "max_size":
            return max(lengths.values())
        if self.mode == "min_size":
            return min(lengths.values())
        if self.mode == "sequential":
            return sum(lengths.values())
        turns = min(lengths[name] // ratio for name, ratio in self.ratios.items())
        count = turns * sum(self.ratios.values())
        for name, ratio in self.ratios.items():
            left = lengths[name] - turns * ratio
            count += min(left, ratio)
            if left < ratio:
                break
        return count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Return the batches of an epoch; a run reads them through `make_position`."""
        parts = {}
        for name, loader in self.loaders.items():
            parts[name] = _Part(self.lengths[name], partial(_iterate, loader))
        return self.read(parts)

    def map(self, function: Callable[[Any], Any]) -> CombinedLoader:
        """Return the same combination of other loaders: the results of a function."""
        loaders = {name: function(loader) for name, loader in self.loaders.items()}
        ratios = self.ratios if self.mode == "interleave" else None
        return CombinedLoader(loaders, self.mode, ratios)

    def set_default_seed(self, seed: int) -> None:
        """Pass a seed to the loaders that were made without one."""
        set_default_seed(self.loaders, seed)

    def make_position(self) -> LoaderPosition:
        """Return the position in the batches of a run."""
        return CombinedPosition(self)

    def count_reads(self, batches: int) -> dict[str, int]:
        """Return how many batches of each loader some batches of an epoch take."""
        if self.mode in ("max_size", "min_size"):
            return dict.fromkeys(self.loaders, batches)
        counts = {}
        before = 0
        if self.mode == "sequential":
            for name, length in self.lengths.items():
                counts[name] = min(max(batches - before, 0), length)
                before += length
            return counts
        turns, rest = divmod(batches, sum(self.ratios.values()))
        for name, ratio in self.ratios.items():
            counts[name] = turns * ratio + min(max(rest - before, 0), ratio)
            before += ratio
        return counts

    def read(self, parts: Mapping[str, _Part], start: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the batches of an epoch from a number on, from the batches of each loader."""
        names = self._names_by_batch()
        for number in range(len(self)):
            chosen = next(names)
            if number >= start:
                yield {name: parts[name].read() for name in chosen}

    def _names_by_batch(self) -> Iterator[tuple[str, ...]]:
        """Return the names of the loaders that each batch of an epoch is read from."""
        if self.mode in ("max_size", "min_size"):
            return repeat(tuple(self.loaders))
        if self.mode == "sequential":
            return chain.from_iterable(repeat((each,), self.lengths[each]) for each in self.loaders)
        turn = [(name,) for name, ratio in self.ratios.items() for _ in range(ratio)]
        return cycle(turn)


class CombinedPosition:
    """The position in a CombinedLoader: that of each of its loaders.

    Args:
        loader: The loader.
    """

    is_shared = False

    def __init__(self, loader: CombinedLoader) -> None:
        self.epoch = 0
        self.batches_done = 0
        self._loader = loader
        self._positions = {name: find_position(each) for name, each in loader.loaders.items()}
        reads = loader.count_reads(len(loader))
        for name, each in loader.loaders.items():
            if reads[name] % loader.lengths[name]:
                check_partial_epochs(each, f"train_loader[{name!r}]")
        self._states: dict[str, Any] | None = None  # from a checkpoint, for the next epoch
        texts = []
        for name, position in self._positions.items():
            if position.announcement is not None:
                texts.append(f"{name}: {position.announcement}")
        self.announcement = "; ".join(texts) or None

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        parts = {}
        for name, position in self._positions.items():
            number, done = self._pass(name, self.batches_done)
            part = _Part(self._loader.lengths[name], self._begin_pass(name), number, done)
            if self._is_inside(name, done) and self._states is not None:
                part.batches = position.begin_epoch()
            parts[name] = part
        self._states = None
        return self._loader.read(parts, self.batches_done)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        self.batches_done = 0
        self._states = None

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the position after a number of batches of the epoch."""
        states = {}
        for name, position in self._positions.items():
            _, done = self._pass(name, batches_done)
            states[name] = position.state_dict(done if self._is_inside(name, done) else 0)
        return {
            "kind": "combined",
            "epoch": self.epoch,
            "batches": batches_done,
            "lengths": dict(self._loader.lengths),
            "mode": self._loader.mode,
            "ratios": dict(self._loader.ratios),
            "loaders": states,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position.

        Raises:
            ConfigError: If the position is inside an epoch of other loaders.
        """
        current = self.state_dict(0)
        names = ("kind", "mode", "lengths", "ratios")
        changed = [name for name in names if state.get(name) != current[name]]
        if changed and state.get("batches"):
            name = changed[0]
            raise ConfigError(
                f"cannot continue inside an epoch: {name!r} of the combined loader was "
                f"{state.get(name)} and is now {current[name]}; restore it, or start from the "
                "weights alone",
                component="train_loader",
                parameter=name,
            )
        if changed:
            return
        self.epoch = state["epoch"]
        self.batches_done = state["batches"]
        self._states = dict(state["loaders"])
        for name, position in self._positions.items():
            number, _ = self._pass(name, self.batches_done)
            position.set_epoch(self._epoch_of(name, number))
            position.load_state_dict(self._states[name])

    def _pass(self, name: str, batches_done: int) -> tuple[int, int]:
        """Return the number of a loader's current pass, and its batches that were read in it."""
        reads = self._loader.count_reads(batches_done)[name]
        if reads == 0:
            return 0, 0
        number, done = divmod(reads - 1, self._loader.lengths[name])
        return number, done + 1

    def _is_inside(self, name: str, done: int) -> bool:
        return 0 < done < self._loader.lengths[name]

    def _epoch_of(self, name: str, number: int) -> int:
        """Return the loader's own epoch, which is another one in each pass over its data."""
        passes, _ = self._pass(name, len(self._loader))
        return self.epoch * (passes + 1) + number

    def _begin_pass(self, name: str) -> Callable[[int], Iterator[Any]]:
        def begin(number: int) -> Iterator[Any]:
            position = self._positions[name]
            position.set_epoch(self._epoch_of(name, number))
            return position.begin_epoch()

        return begin


class _Part:
    """The batches of one loader, which begins again at its end.

    Args:
        length: The number of batches in a pass over its data.
        begin: Returns the batches of a pass, from its number.
        number: The number of the current pass.
        done: The batches of this pass that were read.
    """

    def __init__(
        self, length: int, begin: Callable[[int], Iterator[Any]], number: int = 0, done: int = 0
    ) -> None:
        self.batches: Iterator[Any] | None = None
        self._length = length
        self._begin = begin
        self._number = number
        self._done = done

    def read(self) -> Any:
        if self._done == self._length:
            self._number += 1
            self._done = 0
        if self.batches is None:
            self.batches = self._begin(self._number)
        batch = next(self.batches, END)
        if batch is END:
            raise ConfigError(
                f"a loader has {self._done} batches, but its length is {self._length}",
                component="CombinedLoader",
                parameter="loaders",
            )
        self._done += 1
        if self._done == self._length:
            next(self.batches, None)  # some samplers end their epoch only then
            self.batches = None
        return batch


def _iterate(loader: Any, number: int) -> Iterator[Any]:
    return iter(loader)


def _length(name: str, loader: Any) -> int:
    length = length_of(loader)
    if not length:
        found = "no length" if length is None else "no batches"
        raise _error(f"loader {name!r} has {found}", "loaders")
    return length


def _check_ratios(
    loaders: Mapping[str, Any], mode: str, ratios: Mapping[str, int] | None
) -> dict[str, int]:
    if ratios is None:
        return dict.fromkeys(loaders, 1)
    if mode != "interleave":
        raise _error("'ratios' are for the mode 'interleave'", "ratios")
    unknown = sorted(set(ratios) - set(loaders))
    if unknown:
        raise _error(f"'ratios' has the unknown name {unknown[0]!r}", "ratios")
    if not all(isinstance(ratio, int) and ratio >= 1 for ratio in ratios.values()):
        raise _error("'ratios' must be whole numbers of at least 1", "ratios")
    return {name: ratios.get(name, 1) for name in loaders}


def _error(message: str, parameter: str) -> ConfigError:
    return ConfigError(message, component="CombinedLoader", parameter=parameter)
