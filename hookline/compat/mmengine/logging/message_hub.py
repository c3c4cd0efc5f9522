"""The message hub: scalars with their histories and other values of a run, accessible globally."""

from __future__ import annotations

import copy
import logging
from typing import Any

import torch

from hookline.compat.mmengine.logging.history_buffer import HistoryBuffer
from hookline.compat.mmengine.logging.logger import print_log
from hookline.compat.mmengine.utils import ManagerMixin


class MessageHub(ManagerMixin):
    """The scalars and other values of a run. Those marked as `resumed` are saved in checkpoints."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.log_scalars: dict[str, HistoryBuffer] = {}
        self.runtime_info: dict[str, Any] = {}
        self._resumed_keys: dict[str, bool] = {}

    def update_scalar(self, key: str, value: Any, count: int = 1, resumed: bool = True) -> None:
        self._resumed_keys[key] = resumed
        number = _scalar(value)
        if key not in self.log_scalars:
            self.log_scalars[key] = HistoryBuffer()
        self.log_scalars[key].update(number, count)

    def update_info(self, key: str, value: Any, resumed: bool = True) -> None:
        self._resumed_keys[key] = resumed
        self.runtime_info[key] = value

    def pop_info(self, key: str, default: Any = None) -> Any:
        return self.runtime_info.pop(key, default)

    def get_scalar(self, key: str) -> HistoryBuffer:
        if key not in self.log_scalars:
            raise KeyError(
                f"{key} is not found in Messagehub.log_buffers: "
                f"instance name is: {self.instance_name}"
            )
        return self.log_scalars[key]

    def get_info(self, key: str, default: Any = None) -> Any:
        return self.runtime_info.get(key, default)

    def state_dict(self) -> dict[str, Any]:
        return {
            "log_scalars": self._copy_resumed(self.log_scalars),
            "runtime_info": self._copy_resumed(self.runtime_info),
            "resumed_keys": dict(self._resumed_keys),
        }

    def load_state_dict(self, state_dict: Any) -> None:
        """Load what `state_dict` returned."""
        for key, value in state_dict["log_scalars"].items():
            self.log_scalars[key] = copy.deepcopy(value)
        self.runtime_info.update(copy.deepcopy(state_dict["runtime_info"]))
        for key, resumed in state_dict["resumed_keys"].items():
            if key in self.log_scalars or key in self.runtime_info:
                self._resumed_keys[key] = resumed

    def _copy_resumed(self, values: dict[str, Any]) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, value in values.items():
            if not self._resumed_keys.get(key, False):
                continue
            try:
                copied[key] = copy.deepcopy(value)
            except Exception as error:  # Any class may refuse to be copied, in its own way.
                print_log(
                    f"{key} in message_hub cannot be copied ({error}): it is shared",
                    "current",
                    logging.WARNING,
                )
                copied[key] = value
        return copied


def _scalar(value: Any) -> Any:
    """Return a number. A tensor on an accelerator is kept: fetching it waits for the device."""
    if isinstance(value, torch.Tensor) and value.device.type != "cpu":
        return value
    return value.item() if hasattr(value, "item") else value
