"""Freeze parameters in some epochs."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_at_least
from hookline.optim.patterns import list_parameters, select


@HOOKS.register()
@dataclass
class FreezeHook(BaseHook):
    """Freeze parameters from one epoch until another.

    Frozen parameters have no gradients, so no optimizer changes them. With several ranks their
    gradients are computed and discarded, because DDP and FSDP expect them. Epochs count from 0.

    Args:
        params: Patterns that choose the parameters, by name or module type.
        begin: First epoch in which they are frozen.
        end: First epoch in which they are trained again. None freezes them until the run ends.

    Example:
        ```yaml
        hooks:
          - {type: FreezeHook, params: "0.*", end: 2}
        ```
    """

    params: str | list[str]
    begin: int = 0
    end: int | None = None

    priority = Priority.HIGH

    def __post_init__(self) -> None:
        require_at_least(self, 0, "begin")
        if self.end is not None and self.end <= self.begin:
            raise parameter_error(self, "end", f"must be above 'begin', which is {self.begin}")

    def before_run(self, runner: BaseRunner) -> None:
        every = list_parameters(runner.model, trainable_only=False)
        found = select(self.params, every, ("params",), self.name)
        self._parameters = [each.tensor for each in found]
        self.needs_after_backward = runner.world.size > 1  # type: ignore[misc]

    def before_train_epoch(self, runner: BaseRunner) -> None:
        if runner.world.size == 1:
            for parameter in self._parameters:
                parameter.requires_grad_(not self._is_frozen(runner))

    def after_backward(self, runner: BaseRunner) -> None:
        if runner.world.size > 1 and self._is_frozen(runner):
            for parameter in self._parameters:
                parameter.grad = None

    def _is_frozen(self, runner: BaseRunner) -> bool:
        if self.end is not None and runner.epoch >= self.end:
            return False
        return runner.epoch >= self.begin
