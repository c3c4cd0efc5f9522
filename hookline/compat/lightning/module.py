"""The run's model as Lightning's callbacks expect it: a LightningModule with the same parameters, buffers and layers."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import torch

from hookline.compat.foreign.facade import missing
from hookline.compat.foreign.module import Mode, share_parts

if TYPE_CHECKING:
    from hookline.compat.lightning.hook import LightningHook


def make_module(hook: LightningHook, model: torch.nn.Module) -> Any:
    """A LightningModule that is the model itself under another class: it shares all that the model consists of."""
    return _module_class(hook.names.module)(model, hook)


@functools.cache
def _module_class(base: Any) -> Any:
    class ModuleFacade(base):  # type: ignore[misc]
        """Shares the dicts of the model's parameters, buffers and layers, so that names and values are the same for both."""

        stands_for = "pl_module"

        def __init__(self, source: torch.nn.Module, hook: LightningHook | None = None) -> None:
            super().__init__()
            share_parts(self, source)
            self.__dict__["_hook"] = hook
            self._device = next((p.device for p in source.parameters()), torch.device("cpu"))
            if hook is not None:
                self.__dict__["_trainer"] = hook.trainer

        training = Mode()

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
            """As in Lightning; in an evaluation a value is that of the epoch, and else that of the step, if nothing else is said."""
            trainer = self._hook.trainer
            if on_epoch is None:
                on_epoch = trainer.evaluating and not on_step
            step = float(value) if on_step or (on_step is None and not on_epoch) else None
            epoch = trainer.shared.so_far(name, float(value), reduce_fx, trainer, options.get("batch_size")) if on_epoch else None
            trainer.shared.log(name, step, epoch, prog_bar)

        def log_dict(self, dictionary: Any, *args: Any, **kwargs: Any) -> None:
            for name, value in dictionary.items():
                self.log(name, value, *args, **kwargs)

        def optimizers(self, use_pl_optimizer: bool = True) -> Any:
            found = self._hook.trainer.optimizers
            return found[0] if len(found) == 1 else found

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                source = self.__dict__.get("source")
                if source is not None and hasattr(source, name):
                    return getattr(source, name)
                raise missing(self, name) from None

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return ModuleFacade(copy.deepcopy(self.source, memo))

    return ModuleFacade
