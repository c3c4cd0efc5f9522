"""The base of MMCV's learning rate and momentum updaters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from hookline.compat.mmcv.errors import as_parameter_error
from hookline.compat.mmcv.runner.hooks.hook import Hook
from hookline.errors import parameter_error, require_choice
from hookline.optim.groups import values_per_group
from hookline.optim.policies import Policy, check_warmup
from hookline.optim.schedules import AnnealStrategy, Warmup, warmup_factor


@dataclass(kw_only=True, init=False, eq=False)
class ScheduleHook(Policy, Hook):
    """A hook that sets a hyperparameter before each epoch or iteration.

    Values are lists with one number for each parameter group, or dicts of such lists if the runner
    has several optimizers by name. MMCV's own policies take the parameters below by keyword.

    Args:
        by_epoch: Whether progress counts epochs; otherwise it counts iterations.
        warmup: The shape of the warm-up: `constant`, `linear` or `exp`; None for none.
        warmup_iters: The length of the warm-up in iterations, or epochs with `warmup_by_epoch`.
        warmup_ratio: The factor with which the warm-up starts.
        warmup_by_epoch: Whether `warmup_iters` counts epochs.
    """

    by_epoch: bool = True
    warmup: Any = None
    warmup_iters: Any = 0
    warmup_ratio: float = 0.1
    warmup_by_epoch: bool = False

    initial_key: ClassVar[str]  # the key of a parameter group that holds the initial value
    iterations_only: ClassVar[bool] = False
    reads_checkpoints = False

    def __init__(
        self,
        by_epoch: bool = True,
        warmup: str | None = None,
        warmup_iters: int = 0,
        warmup_ratio: float = 0.1,
        warmup_by_epoch: bool = False,
    ) -> None:
        # Written by hand, because users' policies pass these to `super().__init__` by position.
        self.by_epoch = by_epoch
        self.warmup = warmup
        self.warmup_iters = warmup_iters
        self.warmup_ratio = warmup_ratio
        self.warmup_by_epoch = warmup_by_epoch
        self.__post_init__()

    def __post_init__(self) -> None:
        with as_parameter_error():
            self._check()
        self.warmup_epochs: Any = None
        if self.warmup_by_epoch:
            self.warmup_epochs = self.warmup_iters
            self.warmup_iters = None

    def _check(self) -> None:
        super().__post_init__()
        if self.iterations_only and self.by_epoch:
            raise parameter_error(self, "by_epoch", "must be False: this policy counts iterations")
        strategy = getattr(self, "anneal_strategy", None)
        if strategy is not None:
            require_choice(
                type(self).__name__, "anneal_strategy", strategy, get_args(AnnealStrategy)
            )
        if self.warmup is not None:
            require_choice(type(self).__name__, "warmup", self.warmup, get_args(Warmup))
            check_warmup(self)

    def before_train_epoch(self, runner: Any) -> None:
        if self.warmup_iters is None:
            self.warmup_iters = self.warmup_epochs * len(runner.data_loader)
        if self.by_epoch:
            self.apply(runner, self.update_regular(runner))

    def before_train_iter(self, runner: Any) -> None:
        if not self.by_epoch:
            self.update_regular(runner)
        elif self.warmup is None or runner.iter > self.warmup_iters:
            return
        if self.warmup is not None and runner.iter < self.warmup_iters:
            self.apply(runner, self.warmup_values(runner.iter))
        else:
            self.apply(runner, self.regular_values())

    def progress(self, runner: Any) -> int:
        """Return the number of finished epochs or iterations."""
        return int(runner.epoch if self.by_epoch else runner.iter)

    def end(self, runner: Any) -> int:
        """Return the length of the schedule in epochs or iterations, 0 if it is not needed."""
        length = runner.max_epochs if self.by_epoch else runner.max_iters
        if length is None and self.needs_end:
            raise parameter_error(self, "by_epoch", "does not fit the run, whose end is unknown")
        return self.fit(int(length or 0))

    def factor(self, cur_iters: int) -> float:
        """Return the factor of the warm-up at an iteration."""
        return warmup_factor(self.warmup, cur_iters, self.warmup_iters, self.warmup_ratio)

    def initial_values(self, runner: Any) -> Any:
        """Return the initial value of each group, and record it in the group."""

        def initial(group: dict[str, Any]) -> float:
            if self.initial_key not in group:
                group[self.initial_key] = self.current_value(group)
            return float(group[self.initial_key])

        return for_each_optimizer(
            runner, lambda name, optimizer: [initial(group) for group in optimizer.param_groups]
        )

    def parameter_values(self, runner: Any, parameter: str) -> Any:
        """Return the value of a parameter for each group; see `values_per_group`."""
        return for_each_optimizer(
            runner, lambda name, optimizer: values_per_group(self, parameter, name, optimizer)
        )

    # Each of the two families of updaters implements the following methods.

    def current_value(self, group: dict[str, Any]) -> float:
        """Return the hyperparameter of a parameter group."""
        raise NotImplementedError

    def update_regular(self, runner: Any) -> Any:
        """Compute, keep and return the values without a warm-up."""
        raise NotImplementedError

    def regular_values(self) -> Any:
        """Return the values without a warm-up that were computed last."""
        raise NotImplementedError

    def warmup_values(self, cur_iters: int) -> Any:
        """Return the values of an iteration of the warm-up."""
        raise NotImplementedError

    def apply(self, runner: Any, values: Any) -> None:
        """Set the hyperparameter of each parameter group."""
        raise NotImplementedError


def for_each_optimizer(runner: Any, function: Callable[[str, Any], list[Any]]) -> Any:
    """Call a function with the name and object of each optimizer of a runner.

    Return the result for a single optimizer, which has the name of its class, or a dict of results.
    """
    if isinstance(runner.optimizer, dict):
        return {name: function(name, optimizer) for name, optimizer in runner.optimizer.items()}
    return function(type(runner.optimizer).__name__, runner.optimizer)


def map_values(function: Callable[[Any], Any], values: Any) -> Any:
    """Apply a function to each value of a list, or of each list of a dict."""
    if isinstance(values, dict):
        return {name: map_values(function, group_values) for name, group_values in values.items()}
    return [function(value) for value in values]


def groups_with_values(runner: Any, values: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each parameter group of a runner with its value."""
    if isinstance(runner.optimizer, dict):
        for name, optimizer in runner.optimizer.items():
            yield from zip(optimizer.param_groups, values[name], strict=True)
    else:
        yield from zip(runner.optimizer.param_groups, values, strict=True)
