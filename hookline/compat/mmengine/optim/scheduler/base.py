"""What all parameter schedulers have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from hookline.compat.mmengine.logging import print_log

INF = int(1e9)


class _ParamScheduler:
    """A custom scheduler implements `_get_value`: the values of all groups at step `last_step`, from the ones before."""

    in_steps: ClassVar[tuple[str, ...]] = ()  # further parameters that are counted in steps

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
            raise TypeError(f"``optimizer`` should be an Optimizer, but got {type(optimizer).__name__}")
        if end <= begin:
            raise ValueError(f"end should be larger than begin, but got begin={begin}, end={end}")
        self.optimizer, self.param_name = optimizer, param_name
        self.begin, self.end, self.by_epoch, self.last_step, self.verbose = begin, end, by_epoch, last_step, verbose
        for index, group in enumerate(optimizer.param_groups):
            if last_step == -1:
                group.setdefault(f"initial_{param_name}", group[param_name])
            elif f"initial_{param_name}" not in group:
                raise KeyError(f"param 'initial_{param_name}' is not specified in param_groups[{index}] when resuming an optimizer")
        self.base_values = [group[f"initial_{param_name}"] for group in optimizer.param_groups]
        self._global_step = -1
        self._begin_with()

    def _begin_with(self) -> None:
        self.step()

    @classmethod
    def build_iter_from_epoch(
        cls, *args: Any, begin: int = 0, end: int = INF, by_epoch: bool = True, epoch_length: int | None = None, **kwargs: Any
    ) -> Any:
        """The same schedule, changing with every iteration instead of every epoch."""
        if not by_epoch:
            raise AssertionError("Only epoch-based kwargs whose `by_epoch=True` can be converted to iter-based.")
        if not epoch_length or epoch_length <= 0:
            raise AssertionError(f"`epoch_length` must be a positive integer, but got {epoch_length}.")
        for key in cls.in_steps:
            if kwargs.get(key) is not None:
                value = kwargs[key]
                kwargs[key] = [each * epoch_length for each in value] if isinstance(value, (list, tuple)) else value * epoch_length
        end = end if end == INF else int(end * epoch_length)
        make: Any = cls
        return make(*args, begin=int(begin * epoch_length), end=end, by_epoch=False, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "optimizer" and not callable(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update(state_dict)

    def get_last_value(self) -> list[float]:
        return self._last_value

    def _get_value(self) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__} must implement _get_value")

    def _now(self) -> list[float]:
        return [group[self.param_name] for group in self.optimizer.param_groups]

    def print_value(self, is_verbose: bool, group: int, value: float) -> None:
        if is_verbose:
            print_log(f"Adjusting parameter value of group {group} to {value:.4e}.", "current")

    def step(self) -> None:
        self._global_step += 1
        if self.begin <= self._global_step < self.end:
            self.last_step += 1
            for index, (group, value) in enumerate(zip(self.optimizer.param_groups, self._get_value(), strict=True)):
                group[self.param_name] = value
                self.print_value(self.verbose, index, value)
        self._last_value = self._now()
