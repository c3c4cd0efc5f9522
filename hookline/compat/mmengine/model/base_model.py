"""The base class of models, and the data preprocessors that prepare their batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.model.base_module import BaseModule
from hookline.compat.mmengine.model.utils import stack_batch
from hookline.compat.mmengine.registry import MODELS
from hookline.compat.mmengine.structures import BaseDataElement
from hookline.compat.mmengine.utils import is_list_of


@MODELS.register_module()
class BaseDataPreprocessor(nn.Module):
    """Moves a batch to the model's device.

    Args:
        non_blocking: Copy asynchronously where possible.
    """

    def __init__(self, non_blocking: bool | None = False) -> None:
        super().__init__()
        self._non_blocking = bool(non_blocking)
        self._device = torch.device("cpu")

    def cast_data(self, data: Any) -> Any:
        """Move all tensors in a nested structure to the device."""
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
        _record_device(self, *args, **kwargs)
        return super().to(*args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        self._device = torch.device(torch.cuda.current_device())
        return super().cuda()

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        self._device = torch.device("cpu")
        return super().cpu()


@MODELS.register_module()
class ImgDataPreprocessor(BaseDataPreprocessor):
    """Normalizes, pads and stacks images, and moves them to the model's device."""

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
                    raise AssertionError(
                        f"`{name}` should have 1 or 3 values, but got {len(values)} values"
                    )
                self.register_buffer(name, torch.tensor(values).view(-1, 1, 1), False)
        self._channel_conversion = rgb_to_bgr or bgr_to_rgb
        self.pad_size_divisor = pad_size_divisor
        self.pad_value = pad_value

    def forward(self, data: Any, training: bool = False) -> Any:
        data = self.cast_data(data)
        images = data["inputs"]
        if isinstance(images, torch.Tensor) and images.dim() != 4:
            raise AssertionError(
                "The input of `ImgDataPreprocessor` should be a NCHW tensor or a list, got shape "
                f"{tuple(images.shape)}"
            )
        prepared = [self._normalize(image) for image in images]
        inputs = stack_batch(prepared, self.pad_size_divisor, self.pad_value)
        return {"data_samples": None, **data, "inputs": inputs}

    def _normalize(self, image: torch.Tensor) -> torch.Tensor:
        if self._channel_conversion:
            image = image[[2, 1, 0], ...]
        image = image.float()
        if not self._enable_normalize:
            return image
        mean: Any = self.mean
        std: Any = self.std
        if mean.shape[0] == 3 and (image.dim() != 3 or image.shape[0] != 3):
            raise AssertionError(
                "If the mean has 3 values, the input tensor should in shape of (3, H, W), "
                f"but got {tuple(image.shape)}"
            )
        normalized: torch.Tensor = (image - mean) / std
        return normalized


class BaseModel(BaseModule):
    """The base class of models.

    Subclasses implement `forward(inputs, data_samples, mode)`, which returns losses for the mode
    `loss`, results for `predict`, and anything for `tensor`.
    """

    def __init__(self, data_preprocessor: Any = None, init_cfg: Any = None) -> None:
        super().__init__(init_cfg)
        if data_preprocessor is None:
            data_preprocessor = {"type": "BaseDataPreprocessor"}
        if isinstance(data_preprocessor, Mapping):
            data_preprocessor = MODELS.build(data_preprocessor)
        if not isinstance(data_preprocessor, nn.Module):
            raise TypeError(
                "data_preprocessor should be a `dict` or `nn.Module` instance, "
                f"but got {type(data_preprocessor)}"
            )
        self.data_preprocessor = data_preprocessor

    def train_step(self, data: Any, optim_wrapper: Any) -> dict[str, torch.Tensor]:
        """Run forward, backward and an optimizer step; return the values to log."""
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
        """Return the sum of the values with `loss` in their names, and all values to log."""
        log_vars = []
        for name, value in losses.items():
            if isinstance(value, torch.Tensor):
                log_vars.append((name, value.mean()))
            elif is_list_of(value, torch.Tensor):
                means = [part.mean() for part in value]
                log_vars.append((name, sum(means)))
            else:
                raise TypeError(f"{name} is not a tensor or list of tensors")
        losses_only = [value for name, value in log_vars if "loss" in name]
        loss: Any = sum(losses_only)
        return loss, OrderedDict([("loss", loss), *log_vars])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} must implement forward(inputs, data_samples, mode)"
        )

    def to(self, *args: Any, **kwargs: Any) -> Any:
        for module in self.modules():
            if isinstance(module, BaseDataPreprocessor):
                _record_device(module, *args, **kwargs)
        return super().to(*args, **kwargs)

    def cuda(self, device: Any = None) -> Any:
        if device is None:
            device = "cuda"
        elif isinstance(device, int):
            device = torch.device("cuda", device)
        return self.to(device)

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        return self.to("cpu")

    def _run_forward(self, data: Any, mode: str) -> Any:
        if isinstance(data, dict):
            return self(**data, mode=mode)
        if isinstance(data, (list, tuple)):
            return self(*data, mode=mode)
        raise TypeError(
            f"Output of `data_preprocessor` should be list, tuple or dict, but got {type(data)}"
        )


class BaseTTAModel(BaseModel):
    """A model that predicts several versions of a sample and merges them with `merge_preds`."""

    def __init__(self, module: Any, data_preprocessor: Any = None) -> None:
        super().__init__(data_preprocessor)
        self.module = MODELS.build(module) if isinstance(module, dict) else module

    def merge_preds(self, data_samples_list: list[Any]) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__} must implement merge_preds")

    def test_step(self, data: Any) -> list[Any]:
        versions: list[Any]
        if isinstance(data, dict):
            rows = zip(*data.values(), strict=True)
            versions = [dict(zip(data, values, strict=True)) for values in rows]
        else:
            versions = list(zip(*data, strict=True))
        predictions = [self.module.test_step(version) for version in versions]
        return self.merge_preds(list(zip(*predictions, strict=True)))


def _record_device(module: BaseDataPreprocessor, *args: Any, **kwargs: Any) -> None:
    device = torch._C._nn._parse_to(*args, **kwargs)[0]
    if device is not None:
        module._device = torch.device(device)
