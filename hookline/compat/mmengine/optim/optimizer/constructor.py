"""Which parameter gets which learning rate and weight decay."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIM_WRAPPERS, OPTIMIZERS


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class DefaultOptimWrapperConstructor:
    """`paramwise_cfg`: `custom_keys` by parts of names, and multipliers for biases, norms, depthwise and flat parameters."""

    def __init__(self, optim_wrapper_cfg: dict[str, Any], paramwise_cfg: dict[str, Any] | None = None) -> None:
        if not isinstance(optim_wrapper_cfg, dict) or "optimizer" not in optim_wrapper_cfg:
            raise TypeError(f"optim_wrapper_cfg should be a dict with an 'optimizer', but got {optim_wrapper_cfg}")
        self.optim_wrapper_cfg = dict(optim_wrapper_cfg)
        self.optimizer_cfg = self.optim_wrapper_cfg.pop("optimizer")
        self.paramwise_cfg = paramwise_cfg or {}
        self.base_lr, self.base_wd = self.optimizer_cfg.get("lr"), self.optimizer_cfg.get("weight_decay")
        decays = [key for key in ("bias_decay_mult", "norm_decay_mult", "dwconv_decay_mult") if key in self.paramwise_cfg]
        keys = self.paramwise_cfg.get("custom_keys", {}).values()
        if self.base_wd is None and (decays or any("decay_mult" in each for each in keys)):
            raise ValueError("base_wd should not be None: give the optimizer a weight_decay to multiply")

    def __call__(self, model: nn.Module) -> Any:
        model = model.module if hasattr(model, "module") else model  # type: ignore[assignment]
        options = dict(self.optimizer_cfg)
        kind = options["type"]
        first = next(iter(inspect.signature(OPTIMIZERS.get(kind) if isinstance(kind, str) else kind).parameters), "params")
        params: list[dict[str, Any]] = []
        if self.paramwise_cfg:
            self.add_params(params, model)
        optimizer = OPTIMIZERS.build({**options, first: params if self.paramwise_cfg else model.parameters()})
        return OPTIM_WRAPPERS.build({"type": "OptimWrapper", **self.optim_wrapper_cfg}, default_args={"optimizer": optimizer})

    def add_params(self, params: list[dict[str, Any]], module: nn.Module, prefix: str = "", **kwargs: Any) -> None:
        """Add a group for each parameter of a module."""
        known = {id(each) for group in params for each in group["params"]}
        for name, param in module.named_parameters(recurse=False):
            full_name = f"{prefix}.{name}" if prefix else name
            if self.paramwise_cfg.get("bypass_duplicate", False) and id(param) in known:
                print_log(f"{full_name} is duplicate and skipped", "current", logging.WARNING)
            elif not param.requires_grad:
                print_log(f"{full_name} is skipped since its requires_grad=False", "current", logging.WARNING)
            else:
                params.append({"params": [param], **self._settings(module, f"{prefix}.{name}", name, param)})
        for child_name, child in module.named_children():
            self.add_params(params, child, f"{prefix}.{child_name}" if prefix else child_name)

    def _settings(self, module: nn.Module, full_name: str, name: str, param: nn.Parameter) -> dict[str, Any]:
        custom = self.paramwise_cfg.get("custom_keys", {})
        for key in sorted(sorted(custom), key=len, reverse=True):
            if key in full_name:
                settings = {"lr": self.base_lr * custom[key].get("lr_mult", 1.0)}
                if self.base_wd is not None:
                    settings["weight_decay"] = self.base_wd * custom[key].get("decay_mult", 1.0)
                return {**settings, **custom[key]}
        is_norm = isinstance(module, (_BatchNorm, _InstanceNorm, nn.GroupNorm, nn.LayerNorm))
        settings = {}
        lr_mult = self.paramwise_cfg.get("bias_lr_mult")
        if name == "bias" and not is_norm and lr_mult is not None:
            settings["lr"] = self.base_lr * lr_mult
        decay_mult = self._decay_mult(module, name, param, is_norm)
        if self.base_wd is not None and decay_mult is not None:
            settings["weight_decay"] = self.base_wd * decay_mult
        return settings

    def _decay_mult(self, module: nn.Module, name: str, param: nn.Parameter, is_norm: bool) -> float | None:
        """The first rule that is given and holds for the parameter."""
        depthwise = isinstance(module, nn.Conv2d) and module.in_channels == module.groups
        rules = [
            ("norm_decay_mult", is_norm),
            ("bias_decay_mult", name == "bias"),
            ("dwconv_decay_mult", depthwise),
            ("flat_decay_mult", param.ndim == 1),
        ]
        return next((self.paramwise_cfg[key] for key, holds in rules if holds and self.paramwise_cfg.get(key) is not None), None)
