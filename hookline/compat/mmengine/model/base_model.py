"""Models whose `forward` gives losses, predictions or tensors by `mode`, and what prepares their batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.model.base_module import BaseModule
from hookline.compat.mmengine.model.utils import normalized, stack_batch
from hookline.compat.mmengine.registry import MODELS
from hookline.compat.mmengine.structures import BaseDataElement
from hookline.compat.mmengine.utils import is_list_of


@MODELS.register_module()
class BaseDataPreprocessor(nn.Module):
    """Moves a batch to the model's device."""

    def __init__(self, non_blocking: bool | None = False) -> None:
        super().__init__()
        self._non_blocking = bool(non_blocking)
        self._device = torch.device("cpu")

    def cast_data(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            return {key: self.cast_data(value) for key, value in data.items()}
        if isinstance(data, (str, bytes)) or data is None:
            return data
        if isinstance(data, tuple) and hasattr(data, "_fields"):
            return type(data)(*(self.cast_data(sample) for sample in data))
        if isinstance(data, Sequence):
            return type(data)(self.cast_data(sample) for sample in data)  # type: ignore[call-arg]
        if isinstance(data, (torch.Tensor, BaseDataElement)):
            return data.to(self.device, non_blocking=self._non_blocking)
        return data

    def forward(self, data: Any, training: bool = False) -> Any:
        return self.cast_data(data)

    @property
    def device(self) -> torch.device:
        return self._device

    def to(self, *args: Any, **kwargs: Any) -> Any:
        _note_device(self, *args, **kwargs)
        return super().to(*args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        self._device = torch.device(torch.cuda.current_device())
        return super().cuda()

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        self._device = torch.device("cpu")
        return super().cpu()


@MODELS.register_module()
class ImgDataPreprocessor(BaseDataPreprocessor):
    """Normalizes, pads and stacks images as well."""

    def __init__(
        self,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        pad_size_divisor: int = 1,
        pad_value: float = 0,
        bgr_to_rgb: bool = False,
        rgb_to_bgr: bool = False,
        non_blocking: bool | None = False,
    ) -> None:
        super().__init__(non_blocking)
        if bgr_to_rgb and rgb_to_bgr:
            raise AssertionError("`bgr2rgb` and `rgb2bgr` cannot be set to True at the same time")
        if (mean is None) != (std is None):
            raise AssertionError("mean and std should be both None or tuple")
        self._enable_normalize = mean is not None
        if mean is not None and std is not None:
            for name, values in (("mean", mean), ("std", std)):
                if len(values) not in (1, 3):
                    raise AssertionError(f"`{name}` should have 1 or 3 values, but got {len(values)} values")
                self.register_buffer(name, torch.tensor(values).view(-1, 1, 1), False)
        self._channel_conversion = rgb_to_bgr or bgr_to_rgb
        self.pad_size_divisor, self.pad_value = pad_size_divisor, pad_value

    def forward(self, data: Any, training: bool = False) -> Any:
        data = self.cast_data(data)
        images = data["inputs"]
        if isinstance(images, torch.Tensor) and images.dim() != 4:
            raise AssertionError(f"The input of `ImgDataPreprocessor` should be a NCHW tensor or a list, got shape {tuple(images.shape)}")
        prepared = [normalized(self, image) for image in images]
        return {"data_samples": None, **data, "inputs": stack_batch(prepared, self.pad_size_divisor, self.pad_value)}


class BaseModel(BaseModule):
    """Implement `forward(inputs, data_samples, mode)`: losses for `loss`, results for `predict`, whatever for `tensor`."""

    def __init__(self, data_preprocessor: Any = None, init_cfg: Any = None) -> None:
        super().__init__(init_cfg)
        if data_preprocessor is None:
            data_preprocessor = {"type": "BaseDataPreprocessor"}
        if isinstance(data_preprocessor, Mapping):
            data_preprocessor = MODELS.build(data_preprocessor)
        if not isinstance(data_preprocessor, nn.Module):
            raise TypeError(f"data_preprocessor should be a `dict` or `nn.Module` instance, but got {type(data_preprocessor)}")
        self.data_preprocessor = data_preprocessor

    def train_step(self, data: Any, optim_wrapper: Any) -> dict[str, torch.Tensor]:
        """Forward, backward and an optimizer step; what there is to log."""
        with optim_wrapper.optim_context(self):
            data = self.data_preprocessor(data, True)
            losses = self._run_forward(data, mode="loss")
        parsed_losses, log_vars = self.parse_losses(losses)
        optim_wrapper.update_params(parsed_losses)
        return log_vars

    def val_step(self, data: Any) -> Any:
        return self._run_forward(self.data_preprocessor(data, False), mode="predict")

    def test_step(self, data: Any) -> Any:
        return self._run_forward(self.data_preprocessor(data, False), mode="predict")

    def parse_losses(self, losses: dict[str, Any]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The sum of all that has `loss` in its name, and everything to log."""
        log_vars = []
        for name, value in losses.items():
            if isinstance(value, torch.Tensor):
                log_vars.append((name, value.mean()))
            elif is_list_of(value, torch.Tensor):
                log_vars.append((name, sum(part.mean() for part in value)))
            else:
                raise TypeError(f"{name} is not a tensor or list of tensors")
        loss: Any = sum(value for name, value in log_vars if "loss" in name)
        return loss, OrderedDict([("loss", loss), *log_vars])

    def forward(self, inputs: Any, data_samples: Any = None, mode: str = "tensor") -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement forward(inputs, data_samples, mode)")

    def to(self, *args: Any, **kwargs: Any) -> Any:
        for module in self.modules():
            if isinstance(module, BaseDataPreprocessor):
                _note_device(module, *args, **kwargs)
        return super().to(*args, **kwargs)

    def cuda(self, device: Any = None) -> Any:
        return self.to("cuda" if device is None else torch.device("cuda", device) if isinstance(device, int) else device)

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        return self.to("cpu")

    def _run_forward(self, data: Any, mode: str) -> Any:
        if isinstance(data, dict):
            return self(**data, mode=mode)
        if isinstance(data, (list, tuple)):
            return self(*data, mode=mode)
        raise TypeError(f"Output of `data_preprocessor` should be list, tuple or dict, but got {type(data)}")


class BaseTTAModel(BaseModel):
    """Predicts several versions of a sample and merges the results (`merge_preds`)."""

    def __init__(self, module: Any, data_preprocessor: Any = None) -> None:
        super().__init__(data_preprocessor)
        self.module = MODELS.build(module) if isinstance(module, dict) else module

    def merge_preds(self, data_samples_list: list[Any]) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} must implement merge_preds")

    def test_step(self, data: Any) -> list[Any]:
        versions = (
            [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
            if isinstance(data, dict)
            else list(zip(*data, strict=True))
        )
        predictions = [self.module.test_step(version) for version in versions]
        return self.merge_preds(list(zip(*predictions, strict=True)))


def _note_device(module: BaseDataPreprocessor, *args: Any, **kwargs: Any) -> None:
    device = torch._C._nn._parse_to(*args, **kwargs)[0]
    if device is not None:
        module._device = torch.device(device)
