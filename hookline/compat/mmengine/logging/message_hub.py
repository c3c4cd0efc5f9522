"""The message hub: scalars with their histories and other values of a run, accessible globally."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from typing import Any

import numpy as np
import torch

from hookline.compat.mmengine.logging.history_buffer import HistoryBuffer
from hookline.compat.mmengine.logging.logger import print_log
from hookline.compat.mmengine.utils.manager import ManagerMixin


class MessageHub(ManagerMixin):
    """The scalars and other values of a run. Those marked as `resumed` are saved in checkpoints."""

    def __init__(
        self, name: str, log_scalars: Any = None, runtime_info: Any = None, resumed_keys: Any = None
    ) -> None:
        super().__init__(name)
        self._log_scalars: OrderedDict[str, HistoryBuffer] = OrderedDict(log_scalars or {})
        self._runtime_info: OrderedDict[str, Any] = OrderedDict(runtime_info or {})
        self._resumed_keys: OrderedDict[str, bool] = OrderedDict(resumed_keys or {})

    @classmethod
    def get_current_instance(cls) -> MessageHub:
        """Return the newest hub."""
        if not cls._instance_dict:
            cls.get_instance("mmengine")
        return super().get_current_instance()  # type: ignore[no-any-return]

    @property
    def log_scalars(self) -> OrderedDict[str, HistoryBuffer]:
        return self._log_scalars

    @property
    def runtime_info(self) -> OrderedDict[str, Any]:
        return self._runtime_info

    def update_scalar(self, key: str, value: Any, count: int = 1, resumed: bool = True) -> None:
        self._set_resumed_keys(key, resumed)
        if not isinstance(count, int):
            raise AssertionError(f"The type of count must be int, but got {type(count)}")
        number = _scalar(value)
        if key not in self._log_scalars:
            self._log_scalars[key] = HistoryBuffer()
        self._log_scalars[key].update(number, count)

    def update_scalars(self, log_dict: dict[str, Any], resumed: bool = True) -> None:
        """Update several scalars; a value may be `dict(value=…, count=…)`."""
        for key, value in log_dict.items():
            if isinstance(value, dict):
                self.update_scalar(key, value["value"], value.get("count", 1), resumed)
            else:
                self.update_scalar(key, value, 1, resumed)

    def update_info(self, key: str, value: Any, resumed: bool = True) -> None:
        self._set_resumed_keys(key, resumed)
        self._runtime_info[key] = value

    def update_info_dict(self, info_dict: dict[str, Any], resumed: bool = True) -> None:
        for key, value in info_dict.items():
            self.update_info(key, value, resumed)

    def pop_info(self, key: str, default: Any = None) -> Any:
        return self._runtime_info.pop(key, default)

    def get_scalar(self, key: str) -> HistoryBuffer:
        if key not in self._log_scalars:
            raise KeyError(
                f"{key} is not found in Messagehub.log_buffers: "
                f"instance name is: {self.instance_name}"
            )
        return self._log_scalars[key]

    def get_info(self, key: str, default: Any = None) -> Any:
        return self._runtime_info.get(key, default)

    def state_dict(self) -> dict[str, Any]:
        return {
            "log_scalars": self._copy_resumed(self._log_scalars),
            "runtime_info": self._copy_resumed(self._runtime_info),
            "resumed_keys": OrderedDict(self._resumed_keys),
        }

    def load_state_dict(self, state_dict: Any) -> None:
        """Load the state of another hub: a hub, the result of `state_dict`, or a checkpoint's."""
        if isinstance(state_dict, MessageHub):
            state_dict = {
                "log_scalars": state_dict._log_scalars,
                "runtime_info": state_dict._runtime_info,
                "resumed_keys": state_dict._resumed_keys,
            }
        for key, value in state_dict["log_scalars"].items():
            if isinstance(value, dict) and "log_history" in value:
                value = HistoryBuffer.from_plain(value)
            if not isinstance(value, HistoryBuffer):
                print_log(
                    f"{key} in message_hub is not HistoryBuffer, just skip resuming it.",
                    "current",
                    logging.WARNING,
                )
                continue
            self._log_scalars[key] = copy.deepcopy(value)
        self._runtime_info.update(copy.deepcopy(state_dict["runtime_info"]))
        for key, resumed in state_dict["resumed_keys"].items():
            if key in self._log_scalars or key in self._runtime_info:
                self._resumed_keys[key] = resumed

    def _copy_resumed(self, values: dict[str, Any]) -> OrderedDict[str, Any]:
        copied: OrderedDict[str, Any] = OrderedDict()
        for key, value in values.items():
            if self._resumed_keys.get(key, False):
                copied[key] = copy.deepcopy(value)
        return copied

    def _set_resumed_keys(self, key: str, resumed: bool) -> None:
        if self._resumed_keys.setdefault(key, resumed) != resumed:
            raise AssertionError(
                f"{key} used to be {self._resumed_keys[key]}, but got {resumed} now. "
                "resumed keys cannot be modified repeatedly."
            )


def _scalar(value: Any) -> Any:
    """Return a number. A tensor on an accelerator is kept: fetching it waits for the device."""
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise AssertionError(
                f"a scalar has one element, got a tensor of shape {tuple(value.shape)}"
            )
        return value.item() if value.device.type == "cpu" else value
    if isinstance(value, (np.ndarray, np.number)):
        return value.item()
    if isinstance(value, (int, float)):
        return value
    raise AssertionError(f"a scalar is a number or a tensor of one element, got {type(value)}")
