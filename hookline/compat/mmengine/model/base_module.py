"""Modules that initialize their weights from `init_cfg`."""

from __future__ import annotations

import copy
import logging
from typing import Any

from torch import nn

from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.model.weight_init import PRETRAINED, initialize


class BaseModule(nn.Module):
    """A module whose weights, and those of its children, `init_weights` initializes once."""

    def __init__(self, init_cfg: Any = None) -> None:
        super().__init__()
        self._is_init = False
        self.init_cfg = copy.deepcopy(init_cfg)

    @property
    def is_init(self) -> bool:
        return self._is_init

    @is_init.setter
    def is_init(self, value: bool) -> None:
        self._is_init = value

    def init_weights(self) -> None:
        """Initialize the weights as `init_cfg` describes; a second call only logs a warning."""
        if self._is_init:
            print_log(
                f"init_weights of {type(self).__name__} has been called more than once.",
                "current",
                logging.WARNING,
            )
            return
        configs = self.init_cfg or []
        if not isinstance(configs, list):
            configs = [configs]
        pretrained = []
        others = []
        for config in configs:
            if config["type"] in PRETRAINED:
                pretrained.append(config)
            else:
                others.append(config)
        if others:
            initialize(self, others)
        if isinstance(self.init_cfg, dict) and pretrained:
            initialize(self, pretrained)  # initializing children would overwrite these weights
            self._is_init = True
            return
        for module in self.children():
            if hasattr(module, "init_weights") and not getattr(module, "is_init", False):
                module.init_weights()  # type: ignore[operator]
        if pretrained:
            initialize(self, pretrained)
        self._is_init = True

    def __repr__(self) -> str:
        text = super().__repr__()
        if self.init_cfg:
            text += f"\ninit_cfg={self.init_cfg}"
        return text


class Sequential(BaseModule, nn.Sequential):
    """An `nn.Sequential` with `init_cfg`."""

    def __init__(self, *args: Any, init_cfg: Any = None) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.Sequential.__init__(self, *args)


class ModuleList(BaseModule, nn.ModuleList):
    """An `nn.ModuleList` with `init_cfg`."""

    def __init__(self, modules: Any = None, init_cfg: Any = None) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.ModuleList.__init__(self, modules)


class ModuleDict(BaseModule, nn.ModuleDict):
    """An `nn.ModuleDict` with `init_cfg`."""

    def __init__(self, modules: Any = None, init_cfg: Any = None) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.ModuleDict.__init__(self, modules)
