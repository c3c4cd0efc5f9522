"""Optimizer wrappers: backward, clipping, accumulation, mixed precision and the step, in one place."""

from __future__ import annotations

import logging
from collections.abc import Generator, ItemsView, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.logging import MessageHub, print_log
from hookline.compat.mmengine.registry import OPTIM_WRAPPERS
from hookline.compat.mmengine.utils.dl_utils import has_batch_norm


class BaseOptimWrapper:
    """What schedulers and the runner need of a wrapper."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.base_param_settings: dict[str, Any] | None = None
        if len(optimizer.param_groups) > 1:  # then a group of no parameters shows what the learning rate is in itself
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
        own = self.optimizer.param_groups
        return own if self.base_param_settings is None else [*own, self.base_param_settings]

    @property
    def defaults(self) -> dict[str, Any]:
        return self.optimizer.defaults

    def get_lr(self) -> dict[str, list[float]]:
        base = {} if self.base_param_settings is None else {"base_lr": [self.base_param_settings["lr"]]}
        return {**base, "lr": [group["lr"] for group in self.optimizer.param_groups]}

    def get_momentum(self) -> dict[str, list[float]]:
        groups = self.optimizer.param_groups
        return {"momentum": [group["momentum"] if "momentum" in group else group.get("betas", (0,))[0] for group in groups]}


@OPTIM_WRAPPERS.register_module()
class OptimWrapper(BaseOptimWrapper):
    """`update_params(loss)` does it all; `accumulative_counts` adds gradients up, `clip_grad=dict(max_norm=1)` clips them."""

    def __init__(self, optimizer: torch.optim.Optimizer, accumulative_counts: int = 1, clip_grad: dict[str, Any] | None = None) -> None:
        if accumulative_counts <= 0:
            raise AssertionError("_accumulative_counts at least greater than or equal to 1")
        super().__init__(optimizer)
        self._accumulative_counts = accumulative_counts
        options = dict(clip_grad or {})
        kind = options.pop("type", "norm")
        if kind not in ("norm", "value"):
            raise ValueError(f'type of clip_grad should be "norm" or "value" but got {kind}')
        if clip_grad is not None and not options:
            raise AssertionError("`clip_grad` should contain other arguments besides `type`, such as max_norm or clip_value")
        self.clip_func: Any = nn.utils.clip_grad_norm_ if kind == "norm" else nn.utils.clip_grad_value_
        self.grad_name = f"grad_{kind}"
        self.clip_grad_kwargs = options or None
        self.message_hub = MessageHub.get_current_instance()
        self._inner_count, self._max_counts, self._remainder_counts = 0, -1, -1

    def update_params(self, loss: torch.Tensor, step_kwargs: Any = None, zero_kwargs: Any = None) -> None:
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
        """Around the forward pass; while gradients are added up, a distributed model does not synchronize."""
        if not self.should_sync() and hasattr(model, "no_sync"):
            with model.no_sync():  # type: ignore[operator]
                yield
        else:
            yield

    def _clip_grad(self) -> None:
        params = [p for group in self.optimizer.param_groups for p in group["params"] if p.requires_grad and p.grad is not None]
        if params:
            total = self.clip_func(params, **(self.clip_grad_kwargs or {}))
            if total is not None:
                self.message_hub.update_scalar(f"train/{self.grad_name}", total)

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Where training begins and ends, in iterations: the last gradients are used even if they are fewer."""
        self._inner_count, self._max_counts = init_counts, max_counts
        if init_counts % self._accumulative_counts:
            print_log("resumed in the middle of an accumulation: the gradients before it are lost", "current", logging.WARNING)
        if self._accumulative_counts > 1 and has_batch_norm(model):
            print_log("batch norm still sees single batches while gradients are accumulated", "current", logging.WARNING)
        self._remainder_counts = max_counts % self._accumulative_counts

    def should_update(self) -> bool:
        return self._inner_count % self._accumulative_counts == 0 or self._inner_count == self._max_counts

    def should_sync(self) -> bool:
        following = self._inner_count + 1
        return following % self._accumulative_counts == 0 or following == self._max_counts

    def scale_loss(self, loss: torch.Tensor) -> torch.Tensor:
        if self._accumulative_counts == 1:
            return loss / 1
        at_the_end = self._max_counts != -1 and self._inner_count >= self._max_counts - self._remainder_counts
        return loss / (self._remainder_counts if at_the_end else self._accumulative_counts)

    @property
    def inner_count(self) -> int:
        return self._inner_count

    def __repr__(self) -> str:
        return f"Type: {type(self).__name__}\n_accumulative_counts: {self._accumulative_counts}\noptimizer: \n{self.optimizer!r}\n"


@OPTIM_WRAPPERS.register_module()
class AmpOptimWrapper(OptimWrapper):
    """Mixed precision, with a scaled loss for float16. On a CPU it computes in bfloat16 and scales nothing."""

    def __init__(self, loss_scale: Any = "dynamic", dtype: Any = None, use_fsdp: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        on_gpu = torch.cuda.is_available()
        self._scale_update_param = loss_scale if isinstance(loss_scale, float) else None
        options = {"init_scale": loss_scale} if isinstance(loss_scale, float) else loss_scale if isinstance(loss_scale, dict) else {}
        if not isinstance(loss_scale, (float, dict)) and loss_scale != "dynamic":
            raise TypeError(f'loss_scale must be of type float, dict, or "dynamic", but got {loss_scale}')
        self.loss_scaler = torch.amp.GradScaler("cuda" if on_gpu else "cpu", enabled=on_gpu, **options)
        if isinstance(dtype, str):
            if dtype not in ("float16", "bfloat16", "float32", "float64"):
                raise AssertionError(f"dtype should be any of float16, bfloat16, float32, float64, got {dtype}")
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
        if scaler := state.pop("loss_scaler", None):
            self.loss_scaler.load_state_dict(scaler)
        super().load_state_dict(state)

    @contextmanager
    def optim_context(self, model: nn.Module) -> Generator[None, None, None]:
        kind = "cuda" if torch.cuda.is_available() else "cpu"
        with super().optim_context(model), torch.autocast(kind, dtype=self.cast_dtype):
            yield


class OptimWrapperDict(OptimWrapper):
    """Several wrappers by name, for a model whose `train_step` uses each where it wants."""

    def __init__(self, **optim_wrapper_dict: OptimWrapper) -> None:
        for key, value in optim_wrapper_dict.items():
            if not isinstance(value, OptimWrapper):
                raise AssertionError(f"`OptimWrapperDict` only accept OptimWrapper instance, but got {key}: {type(value)}")
        self.optim_wrappers = optim_wrapper_dict

    def _each(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("this is done with each optimizer separately: optim_wrapper['name'].update_params(loss)")

    update_params = backward = step = optim_context = _each

    def zero_grad(self, **kwargs: Any) -> None:
        for wrapper in self.optim_wrappers.values():
            wrapper.zero_grad(**kwargs)

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """How often each steps is the model's own affair."""

    @property
    def param_groups(self) -> Any:
        return {name: wrapper.param_groups for name, wrapper in self.optim_wrappers.items()}

    def get_lr(self) -> dict[str, list[float]]:
        return {f"{name}.{key}": value for name, wrapper in self.items() for key, value in wrapper.get_lr().items()}

    def get_momentum(self) -> dict[str, list[float]]:
        return {f"{name}.momentum": wrapper.get_momentum()["momentum"] for name, wrapper in self.items()}

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
            raise AssertionError(f"Cannot find {key} in OptimWrapperDict, please check your optimizer constructor.")
        return self.optim_wrappers[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.optim_wrappers)

    def __contains__(self, key: object) -> bool:
        return key in self.optim_wrappers

    def __len__(self) -> int:
        return len(self.optim_wrappers)

    def __repr__(self) -> str:
        return "".join(f"name: {name}\n{wrapper!r}" for name, wrapper in self.items())
