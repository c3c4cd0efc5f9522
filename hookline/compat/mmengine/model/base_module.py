"""Modules that initialize themselves as their `init_cfg` says."""

from __future__ import annotations

import copy
import logging
from typing import Any

from torch import nn

from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.model.weight_init import PRETRAINED, initialize


class BaseModule(nn.Module):
    """`init_weights` does what `init_cfg` says for this module and its children, once."""

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
        if self._is_init:
            print_log(f"init_weights of {type(self).__name__} has been called more than once.", "current", logging.WARNING)
            return
        configs = self.init_cfg if isinstance(self.init_cfg, list) else [self.init_cfg] if self.init_cfg else []
        pretrained = [each for each in configs if each["type"] in PRETRAINED]
        if others := [each for each in configs if each["type"] not in PRETRAINED]:
            initialize(self, others)
        if isinstance(self.init_cfg, dict) and pretrained:
            initialize(self, pretrained)  # children would only spoil what was loaded
            self._is_init = True
            return
        for module in self.children():
            if hasattr(module, "init_weights") and not getattr(module, "is_init", False):
                module.init_weights()  # type: ignore[operator]
        if pretrained:
            initialize(self, pretrained)
        self._is_init = True

    def __repr__(self) -> str:
        own = f"\ninit_cfg={self.init_cfg}" if self.init_cfg else ""
        return super().__repr__() + own


class Sequential(BaseModule, nn.Sequential):
    def __init__(self, *args: Any, init_cfg: Any = None) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.Sequential.__init__(self, *args)


class ModuleList(BaseModule, nn.ModuleList):
    def __init__(self, modules: Any = None, init_cfg: Any = None) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.ModuleList.__init__(self, modules)


class ModuleDict(BaseModule, nn.ModuleDict):
    def __init__(self, modules: Any = None, init_cfg: Any = None) -> None:
        BaseModule.__init__(self, init_cfg)
        nn.ModuleDict.__init__(self, modules)
