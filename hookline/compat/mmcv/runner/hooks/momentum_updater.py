"""Momentum policies, the counterparts of the learning rate's: they act on `momentum`, or on the first of `betas`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.compat.mmcv.runner.hooks.scheduled import Scheduled
from hookline.optim import schedules
from hookline.optim.groups import set_momentum
from hookline.optim.scheduled import check_cycle, check_one_target


class MomentumUpdaterHook(Scheduled, Hook):
    """The base of all policies: a subclass says in `get_momentum(runner, base_momentum)` what it is; a warm-up divides."""

    key: ClassVar[str] = "initial_momentum"
    base_momentum: Any = ()
    regular_momentum: Any = ()

    def get_momentum(self, runner: Any, base_momentum: float) -> float:
        raise NotImplementedError

    def get_regular_momentum(self, runner: Any) -> Any:
        return self.each(lambda base: self.get_momentum(runner, base), self.base_momentum)

    def get_warmup_momentum(self, cur_iters: int) -> Any:
        factor = schedules.warmup_factor(self.warmup, cur_iters, self.warmup_iters, self.warmup_ratio)
        return self.each(lambda momentum: momentum / factor, self.regular_momentum)

    def before_run(self, runner: Any) -> None:
        self.base_momentum = self.initial(runner, "momentum")

    def _regular(self, runner: Any) -> Any:
        self.regular_momentum = self.get_regular_momentum(runner)
        return self.regular_momentum

    def _kept(self) -> Any:
        return self.regular_momentum

    def _warmed(self, cur_iter: int) -> Any:
        return self.get_warmup_momentum(cur_iter)

    def _set_momentum(self, runner: Any, momentum_groups: Any) -> None:
        for group, momentum in self.groups(runner, momentum_groups):
            set_momentum(group, momentum)

    def _put(self, runner: Any, values: Any) -> None:
        self._set_momentum(runner, values)


@HOOKS.register_module()
class StepMomentumUpdaterHook(MomentumUpdaterHook):
    """Multiply with `gamma` every `step` epochs (iterations), or at each one of a list; never below `min_momentum`."""

    def __init__(self, step: int | Sequence[int], gamma: float = 0.5, min_momentum: float | None = None, **kwargs: Any) -> None:
        self.step, self.gamma, self.min_momentum = step, gamma, min_momentum
        super().__init__(**kwargs)

    def get_momentum(self, runner: Any, base_momentum: float) -> float:
        return schedules.step(base_momentum, self.progress(runner), self.step, self.gamma, self.min_momentum)


class _TowardsMinimum(MomentumUpdaterHook):
    """Policies that end at `min_momentum`, or at `min_momentum_ratio` of the initial momentum."""

    def __init__(self, min_momentum: float | None = None, min_momentum_ratio: float | None = None, **kwargs: Any) -> None:
        check_one_target(self, "min_momentum", min_momentum, min_momentum_ratio)
        self.min_momentum, self.min_momentum_ratio = min_momentum, min_momentum_ratio
        super().__init__(**kwargs)

    def target(self, base: float) -> float:
        return base * self.min_momentum_ratio if self.min_momentum_ratio is not None else self.min_momentum  # type: ignore[return-value]


@HOOKS.register_module()
class CosineAnnealingMomentumUpdaterHook(_TowardsMinimum):
    """Half a cosine wave."""

    def get_momentum(self, runner: Any, base_momentum: float) -> float:
        return schedules.cosine(base_momentum, self.target(base_momentum), self.progress(runner) / self.end(runner))


@HOOKS.register_module()
class LinearAnnealingMomentumUpdaterHook(_TowardsMinimum):
    """A straight line."""

    def get_momentum(self, runner: Any, base_momentum: float) -> float:
        return schedules.linear(base_momentum, self.target(base_momentum), self.progress(runner) / self.end(runner))


@HOOKS.register_module()
class CyclicMomentumUpdaterHook(MomentumUpdaterHook):
    """`cyclic_times` cycles: to the first `target_ratio` of the initial momentum, then to the second."""

    def __init__(
        self,
        by_epoch: bool = False,
        target_ratio: float | Sequence[float] = (0.85 / 0.95, 1),
        cyclic_times: int = 1,
        step_ratio_up: float = 0.4,
        anneal_strategy: str = "cos",
        gamma: float = 1,
        **kwargs: Any,
    ) -> None:
        self.ratios = check_cycle(self, target_ratio, cyclic_times, step_ratio_up, gamma)
        self.cyclic_times, self.step_ratio_up, self.gamma, self.anneal_strategy = cyclic_times, step_ratio_up, gamma, anneal_strategy
        super().__init__(self.only_by_iteration(by_epoch), **kwargs)

    def get_momentum(self, runner: Any, base_momentum: float) -> float:
        cycle = self.cyclic_times, self.step_ratio_up, self.gamma, self.anneal_strategy
        return schedules.cyclic(base_momentum, runner.iter, runner.max_iters, self.ratios, *cycle)  # type: ignore[arg-type]


@HOOKS.register_module()
class OneCycleMomentumUpdaterHook(MomentumUpdaterHook):
    """From `max_momentum` down to `base_momentum` while the learning rate goes up, and back while that goes down."""

    def __init__(
        self,
        base_momentum: float | Sequence[float] | dict[str, Any] = 0.85,
        max_momentum: float | Sequence[float] | dict[str, Any] = 0.95,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        by_epoch: bool = False,
        **kwargs: Any,
    ) -> None:
        self._low, self._high = base_momentum, max_momentum
        self.pct_start, self.anneal_strategy, self.three_phase = pct_start, anneal_strategy, three_phase
        super().__init__(self.only_by_iteration(by_epoch), **kwargs)

    def before_run(self, runner: Any) -> None:
        lows, highs = self.spread(runner, self._low), self.spread(runner, self._high)
        both = {name: list(zip(lows[name], highs[name], strict=True)) for name in lows} if isinstance(lows, dict) else None
        self.base_momentum = list(zip(lows, highs, strict=True)) if both is None else both

    def get_momentum(self, runner: Any, base_momentum: Any) -> float:
        low, high = base_momentum
        run = runner.iter, runner.max_iters, self.pct_start, self.anneal_strategy, self.three_phase
        return schedules.one_cycle(high, low, high, *run)  # type: ignore[arg-type]
