"""The base of MMEngine's parameter schedulers."""

from __future__ import annotations

from typing import Any, ClassVar

from hookline.compat.mmengine.logging import print_log

INF = int(1e9)


class _ParamScheduler:
    """A scheduler of one parameter of each group, between the steps `begin` and `end`.

    A subclass implements `_get_value`: the values of all groups at `last_step`, which it computes
    from the current ones, so that several schedulers can change the same parameter.
    """

    in_steps: ClassVar[tuple[str, ...]] = ()  # parameters of the class that are counted in steps

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        begin: int = 0,
        end: int = INF,
        last_step: int = -1,
        by_epoch: bool = True,
        verbose: bool = False,
    ) -> None:
        if not hasattr(optimizer, "param_groups"):
            kind = type(optimizer).__name__
            raise TypeError(f"``optimizer`` should be an Optimizer, but got {kind}")
        if end <= begin:
            raise ValueError(f"end should be larger than begin, but got begin={begin}, end={end}")
        self.optimizer = optimizer
        self.param_name = param_name
        self.begin = begin
        self.end = end
        self.by_epoch = by_epoch
        self.last_step = last_step
        self.verbose = verbose
        self.base_values = self._initial_values()
        self._global_step = -1
        self._initial_step()

    def _initial_values(self) -> list[float]:
        key = f"initial_{self.param_name}"
        values = []
        for index, group in enumerate(self.optimizer.param_groups):
            if self.last_step == -1:
                group.setdefault(key, group[self.param_name])
            elif key not in group:
                raise KeyError(
                    f"param {key!r} is not specified in param_groups[{index}] "
                    "when resuming an optimizer"
                )
            values.append(group[key])
        return values

    def _initial_step(self) -> None:
        self.step()

    @classmethod
    def build_iter_from_epoch(
        cls,
        *args: Any,
        begin: int = 0,
        end: int = INF,
        by_epoch: bool = True,
        epoch_length: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Build the same schedule with one step per iteration instead of one per epoch."""
        if not by_epoch:
            raise AssertionError(
                "Only epoch-based kwargs whose `by_epoch=True` can be converted to iter-based."
            )
        if not epoch_length or epoch_length <= 0:
            raise AssertionError(
                f"`epoch_length` must be a positive integer, but got {epoch_length}."
            )
        for key in cls.in_steps:
            value = kwargs.get(key)
            if isinstance(value, (list, tuple)):
                kwargs[key] = [each * epoch_length for each in value]
            elif value is not None:
                kwargs[key] = value * epoch_length
        if end != INF:
            end = int(end * epoch_length)
        make: Any = cls
        return make(*args, begin=int(begin * epoch_length), end=end, by_epoch=False, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        state = {}
        for key, value in self.__dict__.items():
            if key != "optimizer" and not callable(value):
                state[key] = value
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)

    def get_last_value(self) -> list[float]:
        return self._last_value

    def _get_value(self) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__} must implement _get_value")

    def _current_values(self) -> list[float]:
        return [group[self.param_name] for group in self.optimizer.param_groups]

    def _scale_current(self, factor: float) -> list[float]:
        return [value * factor for value in self._current_values()]

    def print_value(self, is_verbose: bool, group: int, value: float) -> None:
        if is_verbose:
            print_log(f"Adjusting parameter value of group {group} to {value:.4e}.", "current")

    def step(self) -> None:
        """Count a step and set the values if it lies between `begin` and `end`."""
        self._global_step += 1
        if self.begin <= self._global_step < self.end:
            self.last_step += 1
            values = self._get_value()
            groups = self.optimizer.param_groups
            for index, (group, value) in enumerate(zip(groups, values, strict=True)):
                group[self.param_name] = value
                self.print_value(self.verbose, index, value)
        self._last_value = self._current_values()
