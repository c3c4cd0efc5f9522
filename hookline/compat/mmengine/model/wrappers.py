"""The wrapper of models in a distributed job."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hookline.compat.mmengine.model.base_model import run_forward


class MMDistributedDataParallel(DistributedDataParallel):
    """`DistributedDataParallel` with the steps of a BaseModel."""

    def train_step(self, data: Any, optim_wrapper: Any) -> Any:
        with optim_wrapper.optim_context(self):
            data = self.module.data_preprocessor(data, training=True)
            losses = run_forward(self, data, mode="loss")
        parsed_loss, log_vars = self.module.parse_losses(losses)
        optim_wrapper.update_params(parsed_loss)
        return log_vars

    def val_step(self, data: Any) -> Any:
        return self.module.val_step(data)

    def test_step(self, data: Any) -> Any:
        return self.module.test_step(data)


def unwrap(model: Any) -> Any:
    """Return the model inside a wrapper, or the model itself."""
    return model.module if is_model_wrapper(model) else model


def is_model_wrapper(model: nn.Module) -> bool:
    """Return whether a module wraps the model, as its `module`."""
    return isinstance(model, (DataParallel, DistributedDataParallel))
