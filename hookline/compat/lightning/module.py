"""The run's model as a LightningModule with the same parameters, buffers and layers."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import torch

from hookline.compat.foreign.facade import missing_attribute
from hookline.compat.foreign.module import SharedMode, share_parts

if TYPE_CHECKING:
    from hookline.compat.lightning.hook import LightningHook


def make_module(hook: LightningHook, model: torch.nn.Module) -> Any:
    """Return a LightningModule that shares everything that the model consists of."""
    return _module_class(hook.classes.module)(model, hook)


class ModuleFacade:
    """The methods of a LightningModule that shares the parameters and layers of the run's model."""

    stands_for = "pl_module"

    def __init__(self, source: torch.nn.Module, hook: LightningHook | None = None) -> None:
        super().__init__()
        share_parts(self, source)
        self.__dict__["_hook"] = hook
        self._device = next((p.device for p in source.parameters()), torch.device("cpu"))
        if hook is not None:
            self.__dict__["_trainer"] = hook.trainer

    training = SharedMode()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.source.forward(*args, **kwargs)

    def log(
        self,
        name: str,
        value: Any,
        prog_bar: bool = False,
        logger: bool | None = None,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        reduce_fx: Any = "mean",
        **options: Any,
    ) -> None:
        """Log a value as in Lightning.

        By default it is the value of the epoch in an evaluation, and of the step otherwise.
        """
        trainer = self._hook.trainer
        if on_epoch is None:
            on_epoch = trainer.evaluating and not on_step
        if on_step is None:
            on_step = not on_epoch
        step_value = None
        if on_step:
            step_value = float(value)
        epoch_value = None
        if on_epoch:
            batch_size = options.get("batch_size")
            epoch_value = trainer.shared.reduce(name, float(value), reduce_fx, trainer, batch_size)
        trainer.shared.log(name, step_value, epoch_value, prog_bar)

    def log_dict(self, dictionary: Any, *args: Any, **kwargs: Any) -> None:
        for name, value in dictionary.items():
            self.log(name, value, *args, **kwargs)

    def optimizers(self, use_pl_optimizer: bool = True) -> Any:
        found = self._hook.trainer.optimizers
        return found[0] if len(found) == 1 else found

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)  # type: ignore[misc]
        except AttributeError:
            source = self.__dict__.get("source")
            if source is not None and hasattr(source, name):
                return getattr(source, name)
            raise missing_attribute(self, name) from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return type(self)(copy.deepcopy(self.source, memo))


@functools.cache
def _module_class(base: Any) -> Any:
    return type("ModuleFacade", (ModuleFacade, base), {})
