"""Learning rate policies; the values are those of `hookline.optim.schedules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.compat.mmcv.runner.hooks.scheduled import Scheduled
from hookline.optim import schedules
from hookline.optim.scheduled import check_cycle, check_one_target


class LrUpdaterHook(Scheduled, Hook):
    """The base of all policies: a subclass says in `get_lr(runner, base_lr)` what the rate is.

    With `by_epoch` it is set before each epoch, else before each iteration; `warmup` (`constant`, `linear`, `exp`) begins at
    `warmup_ratio` of it and lasts `warmup_iters` iterations, or epochs with `warmup_by_epoch`.
    """

    key: ClassVar[str] = "initial_lr"
    base_lr: Any = ()
    regular_lr: Any = ()

    def get_lr(self, runner: Any, base_lr: float) -> float:
        raise NotImplementedError

    def get_regular_lr(self, runner: Any) -> Any:
        return self.each(lambda base: self.get_lr(runner, base), self.base_lr)

    def get_warmup_lr(self, cur_iters: int) -> Any:
        factor = schedules.warmup_factor(self.warmup, cur_iters, self.warmup_iters, self.warmup_ratio)
        return self.each(lambda rate: rate * factor, self.regular_lr)

    def before_run(self, runner: Any) -> None:
        self.base_lr = self.initial(runner, "lr")

    def _regular(self, runner: Any) -> Any:
        self.regular_lr = self.get_regular_lr(runner)
        return self.regular_lr

    def _kept(self) -> Any:
        return self.regular_lr

    def _warmed(self, cur_iter: int) -> Any:
        return self.get_warmup_lr(cur_iter)

    def _set_lr(self, runner: Any, lr_groups: Any) -> None:
        for group, rate in self.groups(runner, lr_groups):
            group["lr"] = rate

    def _put(self, runner: Any, values: Any) -> None:
        self._set_lr(runner, values)


@HOOKS.register_module()
class FixedLrUpdaterHook(LrUpdaterHook):
    """Keep the learning rate, apart from a warm-up."""

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return base_lr


@HOOKS.register_module()
class StepLrUpdaterHook(LrUpdaterHook):
    """Multiply with `gamma` every `step` epochs (iterations), or at each one of a list; never below `min_lr`."""

    def __init__(self, step: int | Sequence[int], gamma: float = 0.1, min_lr: float | None = None, **kwargs: Any) -> None:
        steps = [step] if isinstance(step, int) else list(step)
        if not steps or any(not isinstance(each, int) or each < 1 for each in steps):
            raise ValueError(f"{type(self).__name__}: step must be a number of at least 1 or a list of such, got {step!r}")
        self.step, self.gamma, self.min_lr = step, gamma, min_lr
        super().__init__(**kwargs)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.step(base_lr, self.progress(runner), self.step, self.gamma, self.min_lr)


@HOOKS.register_module()
class ExpLrUpdaterHook(LrUpdaterHook):
    """Multiply with `gamma` each epoch (iteration)."""

    def __init__(self, gamma: float, **kwargs: Any) -> None:
        self.gamma = gamma
        super().__init__(**kwargs)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.exponential(base_lr, self.progress(runner), self.gamma)


@HOOKS.register_module()
class PolyLrUpdaterHook(LrUpdaterHook):
    """Fall to `min_lr` at the end of the run, as the remaining part of it to the power of `power`."""

    def __init__(self, power: float = 1.0, min_lr: float = 0.0, **kwargs: Any) -> None:
        self.power, self.min_lr = power, min_lr
        super().__init__(**kwargs)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.poly(base_lr, self.progress(runner), self.end(runner), self.power, self.min_lr)


@HOOKS.register_module()
class InvLrUpdaterHook(LrUpdaterHook):
    """Divide by `1 + gamma * progress`, to the power of `power`."""

    def __init__(self, gamma: float, power: float = 1.0, **kwargs: Any) -> None:
        self.gamma, self.power = gamma, power
        super().__init__(**kwargs)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.inverse(base_lr, self.progress(runner), self.gamma, self.power)


class _TowardsMinimum(LrUpdaterHook):
    """Policies that end at `min_lr`, or at `min_lr_ratio` of the initial rate."""

    def __init__(self, min_lr: float | None = None, min_lr_ratio: float | None = None, **kwargs: Any) -> None:
        check_one_target(self, "min_lr", min_lr, min_lr_ratio)
        self.min_lr, self.min_lr_ratio = min_lr, min_lr_ratio
        super().__init__(**kwargs)

    def target(self, base_lr: float) -> float:
        return base_lr * self.min_lr_ratio if self.min_lr_ratio is not None else self.min_lr  # type: ignore[return-value]


@HOOKS.register_module()
class CosineAnnealingLrUpdaterHook(_TowardsMinimum):
    """Half a cosine wave down."""

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.cosine(base_lr, self.target(base_lr), self.progress(runner) / self.end(runner))


@HOOKS.register_module()
class LinearAnnealingLrUpdaterHook(_TowardsMinimum):
    """A straight line down."""

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.linear(base_lr, self.target(base_lr), self.progress(runner) / self.end(runner))


@HOOKS.register_module()
class FlatCosineAnnealingLrUpdaterHook(_TowardsMinimum):
    """The initial rate for the first `start_percent` of the run, then half a cosine wave down."""

    def __init__(self, start_percent: float = 0.75, min_lr: float | None = None, min_lr_ratio: float | None = None, **kwargs: Any) -> None:
        if not isinstance(start_percent, float) or not 0 <= start_percent <= 1:
            raise ValueError(f"expected float between 0 and 1 start_percent, but got {start_percent}")
        self.start_percent = start_percent
        super().__init__(min_lr, min_lr_ratio, **kwargs)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.flat_cosine(base_lr, self.target(base_lr), self.progress(runner), self.end(runner), self.start_percent)


@HOOKS.register_module()
class CosineRestartLrUpdaterHook(_TowardsMinimum):
    """Half a cosine wave in each of `periods`, its height times its one of `restart_weights`."""

    def __init__(
        self,
        periods: Sequence[int],
        restart_weights: Sequence[float] = (1,),
        min_lr: float | None = None,
        min_lr_ratio: float | None = None,
        **kwargs: Any,
    ) -> None:
        if len(periods) != len(restart_weights):
            raise ValueError(f"{type(self).__name__}: periods and restart_weights must be as many, got {periods} and {restart_weights}")
        self.periods, self.restart_weights = periods, restart_weights
        super().__init__(min_lr, min_lr_ratio, **kwargs)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return schedules.cosine_restart(base_lr, self.target(base_lr), self.progress(runner), self.periods, self.restart_weights)


@HOOKS.register_module()
class CyclicLrUpdaterHook(LrUpdaterHook):
    """`cyclic_times` cycles: up to the first `target_ratio` of the initial rate, down to the second, peaks falling with `gamma`."""

    def __init__(
        self,
        by_epoch: bool = False,
        target_ratio: float | Sequence[float] = (10, 1e-4),
        cyclic_times: int = 1,
        step_ratio_up: float = 0.4,
        anneal_strategy: str = "cos",
        gamma: float = 1,
        **kwargs: Any,
    ) -> None:
        self.ratios = check_cycle(self, target_ratio, cyclic_times, step_ratio_up, gamma)
        self.cyclic_times, self.step_ratio_up, self.gamma, self.anneal_strategy = cyclic_times, step_ratio_up, gamma, anneal_strategy
        super().__init__(self.only_by_iteration(by_epoch), **kwargs)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        cycle = self.cyclic_times, self.step_ratio_up, self.gamma, self.anneal_strategy
        return schedules.cyclic(base_lr, runner.iter, runner.max_iters, self.ratios, *cycle)  # type: ignore[arg-type]


@HOOKS.register_module()
class OneCycleLrUpdaterHook(LrUpdaterHook):
    """From `max_lr / div_factor` up to `max_lr`, then down to the `final_div_factor`-th part of where it began."""

    def __init__(
        self,
        max_lr: float | Sequence[float] | dict[str, Any],
        total_steps: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        by_epoch: bool = False,
        **kwargs: Any,
    ) -> None:
        self._max_lr, self.total_steps, self.pct_start, self.anneal_strategy = max_lr, total_steps, pct_start, anneal_strategy
        self.div_factor, self.final_div_factor, self.three_phase = div_factor, final_div_factor, three_phase
        super().__init__(self.only_by_iteration(by_epoch), **kwargs)

    def before_run(self, runner: Any) -> None:
        if self.total_steps is not None and self.total_steps < runner.max_iters:
            raise ValueError(f"total_steps is {self.total_steps}, but the run has {runner.max_iters} iterations")
        self.base_lr = self.each(lambda rate: rate / self.div_factor, self.spread(runner, self._max_lr))
        for group, rate in self.groups(runner, self.base_lr):
            group.setdefault("initial_lr", rate)

    def get_lr(self, runner: Any, base_lr: float) -> float:
        rates = base_lr, base_lr * self.div_factor, base_lr / self.final_div_factor
        end = self.total_steps or runner.max_iters
        return schedules.one_cycle(*rates, runner.iter, end, self.pct_start, self.anneal_strategy, self.three_phase)  # type: ignore[arg-type]
