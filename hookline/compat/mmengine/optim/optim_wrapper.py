"""The optimizer wrapper: backward, gradient accumulation and clipping, the step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.logging import MessageHub, print_log
from hookline.compat.mmengine.registry import OPTIM_WRAPPERS
from hookline.optim.clipping import make_clip


@OPTIM_WRAPPERS.register_module()
class OptimWrapper:
    """An optimizer with gradient accumulation and clipping; `update_params` does a whole step.

    Args:
        optimizer: The optimizer.
        accumulative_counts: The number of iterations in an optimizer step.
        clip_grad: `max_norm` and `norm_type`, or `type="value"` and `clip_value`.

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
        self.optimizer = optimizer
        self.base_param_settings: dict[str, Any] | None = None
        if len(optimizer.param_groups) > 1:
            # A group without parameters follows the learning rate without multipliers.
            self.base_param_settings = {"params": torch.tensor([0.0]), **optimizer.defaults}
        self.message_hub = MessageHub.get_current_instance()
        self._accumulative_counts = accumulative_counts
        self._clip = None
        if clip_grad is not None:
            limits = {key: value for key, value in clip_grad.items() if key != "type"}
            self._clip = make_clip("OptimWrapper", limits)
        self._inner_count = 0
        self._max_counts = -1
        self._remainder_counts = -1

    def update_params(self, loss: torch.Tensor) -> None:
        """Run backward, and step if the accumulation is complete."""
        if self.on_loss is not None:
            loss = self.on_loss(loss)
        self.backward(self.scale_loss(loss))
        if self.should_update():
            self.step()
            self.zero_grad()

    def backward(self, loss: torch.Tensor, **kwargs: Any) -> None:
        loss.backward(**kwargs)  # type: ignore[no-untyped-call]
        self._inner_count += 1

    def zero_grad(self, **kwargs: Any) -> None:
        self.optimizer.zero_grad(**kwargs)

    def step(self, **kwargs: Any) -> None:
        if self._clip is not None:
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

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Set the first and the last iteration: an incomplete accumulation steps at the end."""
        self._inner_count = init_counts
        self._max_counts = max_counts
        self._remainder_counts = max_counts % self._accumulative_counts
        if init_counts % self._accumulative_counts:
            message = "resumed in the middle of an accumulation: the gradients before it are lost"
            print_log(message, "current", logging.WARNING)

    def should_update(self) -> bool:
        """Return whether the accumulation is complete, so that the optimizer steps."""
        return self._completes(self._inner_count)

    def should_sync(self) -> bool:
        """Return whether the next iteration completes the accumulation."""
        return self._completes(self._inner_count + 1)

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

    @property
    def param_groups(self) -> Any:
        groups = self.optimizer.param_groups
        if self.base_param_settings is None:
            return groups
        return [*groups, self.base_param_settings]

    def get_lr(self) -> dict[str, list[float]]:
        """Return the learning rates of all parameter groups."""
        rates = {}
        if self.base_param_settings is not None:
            rates["base_lr"] = [self.base_param_settings["lr"]]
        rates["lr"] = [group["lr"] for group in self.optimizer.param_groups]
        return rates

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

    def _completes(self, count: int) -> bool:
        return count % self._accumulative_counts == 0 or count == self._max_counts

    def _clip_grad(self) -> None:
        params: list[torch.Tensor] = []
        for group in self.optimizer.param_groups:
            params.extend(param for param in group["params"] if param.grad is not None)
        if self._clip is not None and params:
            self.message_hub.update_scalar("train/grad_norm", self._clip(params))
