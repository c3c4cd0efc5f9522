"""Optimizer wrappers: backward, gradient accumulation and clipping, mixed precision, the step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, ItemsView, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.logging import MessageHub, print_log
from hookline.compat.mmengine.registry import OPTIM_WRAPPERS
from hookline.compat.mmengine.utils.dl_utils import has_batch_norm


class BaseOptimWrapper:
    """The part of a wrapper that schedulers and the runner use."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.base_param_settings: dict[str, Any] | None = None
        if len(optimizer.param_groups) > 1:
            # A group without parameters follows the learning rate without multipliers.
            self.base_param_settings = {"params": torch.tensor([0.0]), **optimizer.defaults}

    def update_params(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = self.optimizer.state_dict()
        if self.base_param_settings is not None:
            state["base_param_settings"] = self.base_param_settings
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        base = state.pop("base_param_settings", None)
        if base is not None:
            self.base_param_settings = base
        self.optimizer.load_state_dict(state)

    @property
    def param_groups(self) -> Any:
        groups = self.optimizer.param_groups
        if self.base_param_settings is None:
            return groups
        return [*groups, self.base_param_settings]

    @property
    def defaults(self) -> dict[str, Any]:
        return self.optimizer.defaults

    def get_lr(self) -> dict[str, list[float]]:
        """Return the learning rates of all parameter groups."""
        rates = {}
        if self.base_param_settings is not None:
            rates["base_lr"] = [self.base_param_settings["lr"]]
        rates["lr"] = [group["lr"] for group in self.optimizer.param_groups]
        return rates

    def get_momentum(self) -> dict[str, list[float]]:
        """Return the momentum, or the first beta, of all parameter groups."""
        momenta = []
        for group in self.optimizer.param_groups:
            if "momentum" in group:
                momenta.append(group["momentum"])
            else:
                momenta.append(group.get("betas", (0,))[0])
        return {"momentum": momenta}


@OPTIM_WRAPPERS.register_module()
class OptimWrapper(BaseOptimWrapper):
    """An optimizer with gradient accumulation and clipping; `update_params` does a whole step.

    Args:
        optimizer: The optimizer.
        accumulative_counts: The number of iterations in an optimizer step.
        clip_grad: Arguments of the clip function, with the `type` `norm` (the default) or `value`.

    Attributes:
        on_loss: Gets the loss and returns the one to differentiate. The runner calls hooks here.
    """

    on_loss: Callable[[torch.Tensor], torch.Tensor] | None = None

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        accumulative_counts: int = 1,
        clip_grad: dict[str, Any] | None = None,
    ) -> None:
        if accumulative_counts <= 0:
            raise AssertionError("_accumulative_counts at least greater than or equal to 1")
        super().__init__(optimizer)
        self._accumulative_counts = accumulative_counts
        options = dict(clip_grad or {})
        kind = options.pop("type", "norm")
        if kind not in ("norm", "value"):
            raise ValueError(f'type of clip_grad should be "norm" or "value" but got {kind}')
        if clip_grad is not None and not options:
            raise AssertionError(
                "`clip_grad` needs arguments in addition to `type`, such as max_norm or clip_value"
            )
        self.clip_func: Any = nn.utils.clip_grad_norm_
        if kind == "value":
            self.clip_func = nn.utils.clip_grad_value_
        self.grad_name = f"grad_{kind}"
        self.clip_grad_kwargs = options or None
        self.message_hub = MessageHub.get_current_instance()
        self._inner_count = 0
        self._max_counts = -1
        self._remainder_counts = -1

    def update_params(
        self, loss: torch.Tensor, step_kwargs: Any = None, zero_kwargs: Any = None
    ) -> None:
        """Run backward, and step if the accumulation is complete."""
        if self.on_loss is not None:
            loss = self.on_loss(loss)
        self.backward(self.scale_loss(loss))
        if self.should_update():
            self.step(**(step_kwargs or {}))
            self.zero_grad(**(zero_kwargs or {}))

    def backward(self, loss: torch.Tensor, **kwargs: Any) -> None:
        loss.backward(**kwargs)  # type: ignore[no-untyped-call]
        self._inner_count += 1

    def zero_grad(self, **kwargs: Any) -> None:
        self.optimizer.zero_grad(**kwargs)

    def step(self, **kwargs: Any) -> None:
        if self.clip_grad_kwargs:
            self._clip_grad()
        self.optimizer.step(**kwargs)

    @contextmanager
    def optim_context(self, model: nn.Module) -> Generator[None, None, None]:
        """Wrap the forward pass: DDP does not synchronize while gradients are accumulated."""
        if not self.should_sync() and hasattr(model, "no_sync"):
            with model.no_sync():  # type: ignore[operator]
                yield
        else:
            yield

    def _clip_grad(self) -> None:
        params = []
        for group in self.optimizer.param_groups:
            for param in group["params"]:
                if param.requires_grad and param.grad is not None:
                    params.append(param)
        if not params:
            return
        norm = self.clip_func(params, **(self.clip_grad_kwargs or {}))
        if norm is not None:
            self.message_hub.update_scalar(f"train/{self.grad_name}", norm)

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Set the first and the last iteration: an incomplete accumulation steps at the end."""
        self._inner_count = init_counts
        self._max_counts = max_counts
        if init_counts % self._accumulative_counts:
            print_log(
                "resumed in the middle of an accumulation: the gradients before it are lost",
                "current",
                logging.WARNING,
            )
        if self._accumulative_counts > 1 and has_batch_norm(model):
            print_log(
                "batch norm still sees single batches while gradients are accumulated",
                "current",
                logging.WARNING,
            )
        self._remainder_counts = max_counts % self._accumulative_counts

    def should_update(self) -> bool:
        """Return whether the accumulation is complete, so that the optimizer steps."""
        is_complete = self._inner_count % self._accumulative_counts == 0
        return is_complete or self._inner_count == self._max_counts

    def should_sync(self) -> bool:
        """Return whether the next iteration completes the accumulation."""
        following = self._inner_count + 1
        return following % self._accumulative_counts == 0 or following == self._max_counts

    def scale_loss(self, loss: torch.Tensor) -> torch.Tensor:
        """Divide the loss by the number of iterations in its optimizer step."""
        divisor = self._accumulative_counts
        if divisor > 1 and self._max_counts != -1:
            is_incomplete = self._inner_count >= self._max_counts - self._remainder_counts
            if is_incomplete:
                divisor = self._remainder_counts
        return loss / divisor

    @property
    def inner_count(self) -> int:
        return self._inner_count

    def __repr__(self) -> str:
        return (
            f"Type: {type(self).__name__}\n"
            f"_accumulative_counts: {self._accumulative_counts}\n"
            f"optimizer: \n{self.optimizer!r}\n"
        )


@OPTIM_WRAPPERS.register_module()
class AmpOptimWrapper(OptimWrapper):
    """An OptimWrapper with mixed precision. The loss is scaled on a GPU only.

    Args:
        loss_scale: A number, `dynamic`, or the options of `torch.amp.GradScaler`.
        dtype: The type of the computation; that of `torch.autocast` by default.
        use_fsdp: Accepted and ignored.
        kwargs: Arguments of OptimWrapper.
    """

    def __init__(
        self, loss_scale: Any = "dynamic", dtype: Any = None, use_fsdp: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._scale_update_param: float | None = None
        options: dict[str, Any] = {}
        if isinstance(loss_scale, float):
            self._scale_update_param = loss_scale
            options = {"init_scale": loss_scale}
        elif isinstance(loss_scale, dict):
            options = loss_scale
        elif loss_scale != "dynamic":
            raise TypeError(
                f'loss_scale must be of type float, dict, or "dynamic", but got {loss_scale}'
            )
        has_gpu = torch.cuda.is_available()
        device = "cuda" if has_gpu else "cpu"
        self.loss_scaler = torch.amp.GradScaler(device, enabled=has_gpu, **options)
        if isinstance(dtype, str):
            if dtype not in ("float16", "bfloat16", "float32", "float64"):
                raise AssertionError(
                    f"dtype should be any of float16, bfloat16, float32, float64, got {dtype}"
                )
            dtype = getattr(torch, dtype)
        self.cast_dtype = dtype

    def backward(self, loss: torch.Tensor, **kwargs: Any) -> None:
        self.loss_scaler.scale(loss).backward(**kwargs)  # type: ignore[no-untyped-call]
        self._inner_count += 1

    def step(self, **kwargs: Any) -> None:
        if self.clip_grad_kwargs:
            self.loss_scaler.unscale_(self.optimizer)
            self._clip_grad()
        self.loss_scaler.step(self.optimizer, **kwargs)
        self.loss_scaler.update(self._scale_update_param)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "loss_scaler": self.loss_scaler.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        scaler = state.pop("loss_scaler", None)
        if scaler:
            self.loss_scaler.load_state_dict(scaler)
        super().load_state_dict(state)

    @contextmanager
    def optim_context(self, model: nn.Module) -> Generator[None, None, None]:
        kind = "cuda" if torch.cuda.is_available() else "cpu"
        with super().optim_context(model), torch.autocast(kind, dtype=self.cast_dtype):
            yield


class OptimWrapperDict(OptimWrapper):
    """Several wrappers by name, for a model whose `train_step` calls each of them."""

    def __init__(self, **optim_wrapper_dict: OptimWrapper) -> None:
        for key, value in optim_wrapper_dict.items():
            if not isinstance(value, OptimWrapper):
                raise AssertionError(
                    "`OptimWrapperDict` only accept OptimWrapper instance, "
                    f"but got {key}: {type(value)}"
                )
        self.optim_wrappers = optim_wrapper_dict

    def _not_available(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "call the method of each wrapper: optim_wrapper['name'].update_params(loss)"
        )

    update_params = _not_available
    backward = _not_available
    step = _not_available
    optim_context = _not_available

    def zero_grad(self, **kwargs: Any) -> None:
        for wrapper in self.optim_wrappers.values():
            wrapper.zero_grad(**kwargs)

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Do nothing: the model decides when each optimizer steps."""

    @property
    def param_groups(self) -> Any:
        return {name: wrapper.param_groups for name, wrapper in self.optim_wrappers.items()}

    def get_lr(self) -> dict[str, list[float]]:
        rates = {}
        for name, wrapper in self.items():
            for key, value in wrapper.get_lr().items():
                rates[f"{name}.{key}"] = value
        return rates

    def get_momentum(self) -> dict[str, list[float]]:
        momenta = {}
        for name, wrapper in self.items():
            momenta[f"{name}.momentum"] = wrapper.get_momentum()["momentum"]
        return momenta

    def state_dict(self) -> dict[str, Any]:
        return {name: wrapper.state_dict() for name, wrapper in self.items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, state in state_dict.items():
            self[name].load_state_dict(state)

    def items(self) -> ItemsView[str, OptimWrapper]:
        return self.optim_wrappers.items()

    def values(self) -> ValuesView[OptimWrapper]:
        return self.optim_wrappers.values()

    def keys(self) -> KeysView[str]:
        return self.optim_wrappers.keys()

    def __getitem__(self, key: str) -> OptimWrapper:
        if key not in self.optim_wrappers:
            raise AssertionError(
                f"Cannot find {key} in OptimWrapperDict, please check your optimizer constructor."
            )
        return self.optim_wrappers[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.optim_wrappers)

    def __contains__(self, key: object) -> bool:
        return key in self.optim_wrappers

    def __len__(self) -> int:
        return len(self.optim_wrappers)

    def __repr__(self) -> str:
        return "".join(f"name: {name}\n{wrapper!r}" for name, wrapper in self.items())
