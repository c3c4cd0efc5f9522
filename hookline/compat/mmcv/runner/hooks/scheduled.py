"""What learning rate and momentum policies share: when values are set, the warm-up, one optimizer or several by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, get_args

from hookline.optim.schedules import Warmup


class Scheduled:
    """Values are lists, one for each parameter group, or dicts of such lists where the runner has several optimizers."""

    key: ClassVar[str]  # of a group, where its initial value is kept

    def __init__(
        self,
        by_epoch: bool = True,
        warmup: str | None = None,
        warmup_iters: int = 0,
        warmup_ratio: float = 0.1,
        warmup_by_epoch: bool = False,
    ) -> None:
        name = type(self).__name__
        if warmup is not None:
            if warmup not in get_args(Warmup):
                raise ValueError(f"{name}: {warmup!r} is not a supported type for warming up, valid types are {get_args(Warmup)}")
            if warmup_iters < 1:
                raise ValueError(f"{name}: warmup needs warmup_iters of at least 1, got {warmup_iters}")
            if not 0 < warmup_ratio <= 1:
                raise ValueError(f"{name}: warmup_ratio must lie above 0 and not above 1, got {warmup_ratio}")
        self.by_epoch, self.warmup_ratio = by_epoch, warmup_ratio
        self.warmup: Any = warmup
        self.warmup_by_epoch = warmup_by_epoch
        self.warmup_iters: Any = None if warmup_by_epoch else warmup_iters
        self.warmup_epochs = warmup_iters if warmup_by_epoch else None

    def before_train_epoch(self, runner: Any) -> None:
        if self.warmup_iters is None:
            self.warmup_iters = self.warmup_epochs * len(runner.data_loader)  # type: ignore[operator]
        if self.by_epoch:
            self._put(runner, self._regular(runner))

    def before_train_iter(self, runner: Any) -> None:
        warming = self.warmup is not None and runner.iter < self.warmup_iters
        if not self.by_epoch:
            regular = self._regular(runner)
            self._put(runner, self._warmed(runner.iter) if warming else regular)
        elif warming:
            self._put(runner, self._warmed(runner.iter))
        elif self.warmup is not None and runner.iter == self.warmup_iters:
            self._put(runner, self._kept())

    def progress(self, runner: Any) -> int:
        return int(runner.epoch if self.by_epoch else runner.iter)

    def end(self, runner: Any) -> int:
        return int(runner.max_epochs if self.by_epoch else runner.max_iters)

    def only_by_iteration(self, by_epoch: bool) -> bool:
        if by_epoch:
            raise ValueError(f"{type(self).__name__} goes by iteration only: leave by_epoch out, or say by_epoch=False")
        return by_epoch

    def initial(self, runner: Any, name: str) -> Any:
        """The initial value of each group, noted in the group where it is not yet."""

        def of(group: dict[str, Any]) -> Any:
            if name == "momentum" and "momentum" not in group and "betas" not in group:
                raise ValueError(f"{type(self).__name__}: the optimizer has neither 'momentum' nor 'betas'")
            return group.setdefault(self.key, group[name] if name in group else group["betas"][0])

        return self.spread_by(runner, lambda optimizer, _: [of(group) for group in optimizer.param_groups])

    def spread(self, runner: Any, given: Any) -> Any:
        """One number, or one for each group, or a dict of either by optimizer, as values."""

        def for_one(optimizer: Any, name: str) -> list[Any]:
            value = given.get(name) if isinstance(given, dict) else given
            values = list(value) if isinstance(value, (list, tuple)) else [value] * len(optimizer.param_groups)
            if len(values) != len(optimizer.param_groups) or None in values:
                raise ValueError(f"{type(self).__name__}: {given!r} does not fit {len(optimizer.param_groups)} parameter groups of {name}")
            return values

        return self.spread_by(runner, for_one)

    @staticmethod
    def spread_by(runner: Any, function: Callable[[Any, str], list[Any]]) -> Any:
        if isinstance(runner.optimizer, dict):
            return {name: function(optimizer, name) for name, optimizer in runner.optimizer.items()}
        return function(runner.optimizer, type(runner.optimizer).__name__)

    @staticmethod
    def each(function: Callable[[Any], Any], values: Any) -> Any:
        if isinstance(values, dict):
            return {name: [function(value) for value in some] for name, some in values.items()}
        return [function(value) for value in values]

    @staticmethod
    def groups(runner: Any, values: Any) -> Iterator[tuple[dict[str, Any], Any]]:
        """Each parameter group with its value."""
        if isinstance(runner.optimizer, dict):
            for name, optimizer in runner.optimizer.items():
                yield from zip(optimizer.param_groups, values[name], strict=True)
        else:
            yield from zip(runner.optimizer.param_groups, values, strict=True)

    def _regular(self, runner: Any) -> Any:
        """The values without a warm-up, which are kept."""
        raise NotImplementedError

    def _kept(self) -> Any:
        raise NotImplementedError

    def _warmed(self, cur_iter: int) -> Any:
        raise NotImplementedError

    def _put(self, runner: Any, values: Any) -> None:
        raise NotImplementedError
