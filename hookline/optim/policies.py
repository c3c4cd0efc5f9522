"""Schedule policies: the parameters of each schedule, and the value at a point of the run.

A policy is not a hook. The updater hooks, and those of MMCV, inherit from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hookline.errors import ConfigError, parameter_error, require_at_least
from hookline.optim import schedules
from hookline.optim.schedules import AnnealStrategy, DecayShape


@dataclass
class Policy:
    """The base of all policies. A subclass implements `compute`."""

    needs_end: ClassVar[bool] = False  # whether `compute` uses the length of the run

    def __post_init__(self) -> None:
        """Check the parameters. A subclass calls `super().__post_init__()` first."""

    def compute(self, initial: float, progress: int, end: int) -> float:
        """Return the value at a point of the run.

        Args:
            initial: The parameter group's value before any schedule.
            progress: The number of finished epochs or iterations.
            end: The number of epochs or iterations of the run, 0 if it is unknown.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement 'compute'")

    def fit(self, end: int) -> int:
        """Return the length of the schedule in a run of this length.

        Raise ConfigError if the schedule is too short for the run.
        """
        return end


@dataclass
class Fixed(Policy):
    """The initial value throughout."""

    def compute(self, initial: float, progress: int, end: int) -> float:
        return initial


@dataclass
class Step(Policy):
    """Multiplication by `gamma` at regular or given steps.

    Args:
        step: The number of epochs (or iterations) between two steps, or a list of them.
        gamma: The factor of every step.
    """

    step: int | list[int]
    gamma: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = [self.step] if isinstance(self.step, int) else list(self.step)
        if not steps or min(steps) < 1 or steps != sorted(steps):
            expected = "must be at least 1, or a list of such numbers in ascending order"
            raise parameter_error(self, "step", expected)

    def minimum(self) -> float | None:
        """Return the value below which the schedule does not fall."""
        return None

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.step(initial, progress, self.step, self.gamma, self.minimum())


@dataclass
class StepLr(Step):
    """Steps of the learning rate, which does not fall below `min_lr`."""

    min_lr: float | None = None

    def minimum(self) -> float | None:
        return self.min_lr


@dataclass
class StepMomentum(Step):
    """Steps of the momentum, which does not fall below `min_momentum`."""

    gamma: float = 0.5
    min_momentum: float | None = None

    def minimum(self) -> float | None:
        return self.min_momentum


@dataclass
class Exp(Policy):
    """Multiplication by `gamma` after each epoch (or iteration)."""

    gamma: float

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.exponential(initial, progress, self.gamma)


@dataclass
class Inv(Policy):
    """Division by `1 + gamma * progress`, raised to `power`."""

    gamma: float
    power: float = 1.0

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.inverse(initial, progress, self.gamma, self.power)


@dataclass
class Annealing(Policy):
    """The base of policies that move from the initial value to a target."""

    needs_end = True

    def target(self, initial: float) -> float:
        """Return the value at the end of the run."""
        raise NotImplementedError(f"{type(self).__name__} does not implement 'target'")


@dataclass
class Poly(Annealing):
    """Decay to the target with the remaining fraction of the run, raised to `power`."""

    power: float = 1.0

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.poly(initial, progress, end, self.power, self.target(initial))


@dataclass
class PolyLr(Poly):
    """Decay of the learning rate to `min_lr`."""

    min_lr: float = 0.0

    def target(self, initial: float) -> float:
        return self.min_lr


@dataclass
class ToMinLr(Annealing):
    """The target of a learning rate: `min_lr`, or `min_lr_ratio` of the initial rate.

    Args:
        min_lr: Final learning rate. Give either this or `min_lr_ratio`.
        min_lr_ratio: Final learning rate as a fraction of the initial one.
    """

    min_lr: float | None = None
    min_lr_ratio: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "min_lr", "min_lr_ratio")

    def target(self, initial: float) -> float:
        return resolve_target(initial, self.min_lr, self.min_lr_ratio)


@dataclass
class ToMinMomentum(Annealing):
    """The target of a momentum: `min_momentum`, or `min_momentum_ratio` of the initial one.

    Args:
        min_momentum: Final momentum. Give either this or `min_momentum_ratio`.
        min_momentum_ratio: Final momentum as a fraction of the initial one.
    """

    min_momentum: float | None = None
    min_momentum_ratio: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self, "min_momentum", "min_momentum_ratio")

    def target(self, initial: float) -> float:
        return resolve_target(initial, self.min_momentum, self.min_momentum_ratio)


@dataclass
class Cosine(Annealing):
    """Half a cosine wave to the target."""

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.cosine(initial, self.target(initial), min(progress / end, 1.0))


@dataclass
class Linear(Annealing):
    """A straight line to the target."""

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.linear(initial, self.target(initial), min(progress / end, 1.0))


@dataclass
class FlatCosine(Annealing):
    """The initial value for the first `start_percent` of the run, then half a cosine wave."""

    start_percent: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "start_percent")

    def compute(self, initial: float, progress: int, end: int) -> float:
        target = self.target(initial)
        return schedules.flat_cosine(initial, target, progress, end, self.start_percent)


@dataclass
class StableDecay(Annealing):
    """The initial value until the last part of the run, in which it moves to the target.

    Args:
        decay_ratio: Part of the run in which the value moves, from 0 to 1.
        decay_shape: `linear`, `cosine`, or `sqrt` for `1 - sqrt` of the way.
    """

    decay_ratio: float = 0.2
    decay_shape: DecayShape = "linear"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "decay_ratio")

    def compute(self, initial: float, progress: int, end: int) -> float:
        target = self.target(initial)
        return schedules.stable_decay(
            initial, target, progress, end, self.decay_ratio, self.decay_shape
        )


@dataclass
class CosineRestart(Annealing):
    """One cosine wave per period.

    Args:
        periods: The length of each wave in epochs (or iterations).
        restart_weights: The height of each wave as a fraction of the first one's.
    """

    periods: list[int]
    restart_weights: list[float] = field(default_factory=lambda: [1.0])

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.periods or min(self.periods) < 1:
            raise parameter_error(self, "periods", "must be numbers of at least 1")
        if len(self.periods) != len(self.restart_weights):
            expected = f"must have one weight for each of the {len(self.periods)} periods"
            raise parameter_error(self, "restart_weights", expected)

    def fit(self, end: int) -> int:
        if sum(self.periods) < end:
            raise parameter_error(self, "periods", f"must cover the run, which ends after {end}")
        return end

    def compute(self, initial: float, progress: int, end: int) -> float:
        target = self.target(initial)
        return schedules.cosine_restart(
            initial, target, progress, self.periods, self.restart_weights
        )


@dataclass
class Cyclic(Policy):
    """Cycles of two phases.

    Args:
        target_ratio: The target of each phase as a fraction of the initial value. If only one is
            given, the second phase ends at a hundred-thousandth of it.
        cyclic_times: The number of cycles in the run.
        step_ratio_up: The length of the first phase as a fraction of the cycle.
        anneal_strategy: The shape of each phase: `cos` or `linear`.
        gamma: The factor by which every peak comes closer to the initial value than the one before.
    """

    target_ratio: float | list[float]
    cyclic_times: int = 1
    step_ratio_up: float = 0.4
    anneal_strategy: AnnealStrategy = "cos"
    gamma: float = 1.0

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "cyclic_times")
        if not 0 <= self.step_ratio_up < 1:
            raise parameter_error(self, "step_ratio_up", "must be at least 0 and below 1")
        if not 0 < self.gamma <= 1:
            raise parameter_error(self, "gamma", "must be above 0 and at most 1")
        self._ratios = self._both_ratios()

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.cyclic(
            initial,
            progress,
            end,
            self._ratios,
            self.cyclic_times,
            self.step_ratio_up,
            self.gamma,
            self.anneal_strategy,
        )

    def _both_ratios(self) -> Sequence[float]:
        given = self.target_ratio
        ratios = list(given) if isinstance(given, Sequence) else [given]
        if len(ratios) == 1:
            return [ratios[0], ratios[0] / 1e5]
        if len(ratios) == 2:
            return ratios
        raise parameter_error(self, "target_ratio", "must be one number or a list of two")


@dataclass
class OneCycle(Policy):
    """One cycle: up from the initial value to its `div_factor`-fold, then down again.

    Args:
        total_steps: The length of the cycle in epochs (or iterations); None for that of the run.
        pct_start: The fraction of the cycle in which the value rises.
        anneal_strategy: The shape of each phase: `cos` or `linear`.
        div_factor: The highest value divided by the first.
        final_div_factor: The first value divided by the last.
        three_phase: Whether the value falls to its start first and then to its end.
    """

    total_steps: int | None = None
    pct_start: float = 0.3
    anneal_strategy: AnnealStrategy = "cos"
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    three_phase: bool = False

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "pct_start")

    def fit(self, end: int) -> int:
        if self.total_steps is None:
            return end
        require_at_least(self, end, "total_steps")
        return self.total_steps

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.one_cycle(
            initial,
            initial * self.div_factor,
            initial / self.final_div_factor,
            min(progress, end - 1),
            end,
            self.pct_start,
            self.anneal_strategy,
            self.three_phase,
        )


@dataclass
class HighestLr(Policy):
    """The highest learning rate of a cycle.

    Args:
        max_lr: One number, a list with one for each parameter group, or a mapping of either by the
            optimizers' names.
    """

    max_lr: float | list[float] | dict[str, Any]


@dataclass
class OneCycleLr(OneCycle, HighestLr):
    """One cycle of the learning rate, which starts at `max_lr / div_factor`."""


@dataclass
class OneCycleMomentum(Policy):
    """One cycle of the momentum: down while the learning rate rises, and up again.

    Args:
        base_momentum: The lowest momentum, where the learning rate is highest.
        max_momentum: The momentum at the start and at the end.
        pct_start: The fraction of the run in which the momentum falls.
        anneal_strategy: The shape of each phase: `cos` or `linear`.
        three_phase: Whether the last part of the run keeps `max_momentum`.
    """

    base_momentum: float = 0.85
    max_momentum: float = 0.95
    pct_start: float = 0.3
    anneal_strategy: AnnealStrategy = "cos"
    three_phase: bool = False

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "pct_start")

    def compute(self, initial: float, progress: int, end: int) -> float:
        return schedules.one_cycle(
            initial,
            self.base_momentum,
            initial,
            min(progress, end - 1),
            end,
            self.pct_start,
            self.anneal_strategy,
            self.three_phase,
        )


def check_warmup(owner: Any) -> None:
    """Raise ConfigError if the owner's warm-up has no length, or its ratio is not in (0, 1]."""
    if owner.warmup is not None:
        require_at_least(owner, 1, "warmup_iters")
    if not 0 < owner.warmup_ratio <= 1:
        raise parameter_error(owner, "warmup_ratio", "must be above 0 and at most 1")


def check_fraction(owner: object, name: str) -> None:
    """Raise ConfigError unless a parameter lies between 0 and 1."""
    if not 0 <= getattr(owner, name) <= 1:
        raise parameter_error(owner, name, "must be between 0 and 1")


def check_target(owner: object, minimum: str, ratio: str) -> None:
    """Raise ConfigError unless exactly one of two parameters is given."""
    given = [name for name in (minimum, ratio) if getattr(owner, name) is not None]
    if len(given) == 1:
        return
    found = "both" if given else "neither"
    message = f"exactly one of {minimum!r} and {ratio!r} must be given, got {found}"
    raise ConfigError(message, component=type(owner).__name__, parameter=minimum)


def resolve_target(initial: float, minimum: float | None, ratio: float | None) -> float:
    """Return `minimum`, or else `ratio` of the initial value."""
    if minimum is not None:
        return minimum
    assert ratio is not None
    return initial * ratio
