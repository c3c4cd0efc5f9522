"""Wrappers of models in a distributed job."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from hookline.compat.mmengine.registry import MODEL_WRAPPERS


@MODEL_WRAPPERS.register_module()
class MMDistributedDataParallel(DistributedDataParallel):
    """`DistributedDataParallel` with the steps of a BaseModel."""

    def __init__(
        self, module: nn.Module, detect_anomalous_params: bool = False, **kwargs: Any
    ) -> None:
        if not any(parameter.is_cuda for parameter in module.parameters()):
            kwargs["device_ids"] = None
        super().__init__(module=module, **kwargs)

    def train_step(self, data: Any, optim_wrapper: Any) -> Any:
        with optim_wrapper.optim_context(self):
            data = self.module.data_preprocessor(data, training=True)
            if isinstance(data, dict):
                losses = self(**data, mode="loss")
            else:
                losses = self(*data, mode="loss")
        parsed_loss, log_vars = self.module.parse_losses(losses)
        optim_wrapper.update_params(parsed_loss)
        return log_vars

    def val_step(self, data: Any) -> Any:
        return self.module.val_step(data)

    def test_step(self, data: Any) -> Any:
        return self.module.test_step(data)


def is_model_wrapper(model: nn.Module, registry: Any = MODEL_WRAPPERS) -> bool:
    """Return whether a module wraps the model, as its `module`."""
    wrappers = (DataParallel, DistributedDataParallel, *registry.module_dict.values())
    return isinstance(model, wrappers)


def unwrap_model(model: Any) -> Any:
    """Return the model inside a wrapper, or the module itself."""
    return model.module if is_model_wrapper(model) else model
