"""Group parameters by learning rate and weight decay."""

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
    """The constructor of an optimizer wrapper, with settings for single parameters.

    Args:
        optim_wrapper_cfg: The config of the wrapper, with that of the optimizer.
        paramwise_cfg: `custom_keys` by parts of parameter names, and multipliers for biases,
            normalization layers, depthwise convolutions and parameters with one dimension.
    """

    def __init__(
        self, optim_wrapper_cfg: dict[str, Any], paramwise_cfg: dict[str, Any] | None = None
    ) -> None:
        if not isinstance(optim_wrapper_cfg, dict) or "optimizer" not in optim_wrapper_cfg:
            raise TypeError(
                "optim_wrapper_cfg should be a dict with an 'optimizer', "
                f"but got {optim_wrapper_cfg}"
            )
        self.optim_wrapper_cfg = dict(optim_wrapper_cfg)
        self.optimizer_cfg = self.optim_wrapper_cfg.pop("optimizer")
        self.paramwise_cfg = paramwise_cfg or {}
        self.base_lr = self.optimizer_cfg.get("lr")
        self.base_wd = self.optimizer_cfg.get("weight_decay")
        if self.base_wd is None and self._multiplies_decay():
            raise ValueError(
                "base_wd should not be None: the optimizer needs a weight_decay to multiply"
            )

    def _multiplies_decay(self) -> bool:
        for key in ("bias_decay_mult", "norm_decay_mult", "dwconv_decay_mult"):
            if key in self.paramwise_cfg:
                return True
        custom = self.paramwise_cfg.get("custom_keys", {}).values()
        return any("decay_mult" in settings for settings in custom)

    def __call__(self, model: Any) -> Any:
        """Build the wrapper for a model."""
        model = getattr(model, "module", model)
        config = dict(self.optimizer_cfg)
        if self.paramwise_cfg:
            groups: list[dict[str, Any]] = []
            self.add_params(groups, model)
            config[_first_parameter(config["type"])] = groups
        else:
            config[_first_parameter(config["type"])] = model.parameters()
        return OPTIM_WRAPPERS.build(
            {"type": "OptimWrapper", **self.optim_wrapper_cfg},
            default_args={"optimizer": OPTIMIZERS.build(config)},
        )

    def add_params(
        self, params: list[dict[str, Any]], module: nn.Module, prefix: str = "", **kwargs: Any
    ) -> None:
        """Add a group for each parameter of a module."""
        known: set[int] = set()
        for group in params:
            known.update(id(param) for param in group["params"])
        for name, param in module.named_parameters(recurse=False):
            full_name = f"{prefix}.{name}" if prefix else name
            if self.paramwise_cfg.get("bypass_duplicate", False) and id(param) in known:
                print_log(f"{full_name} is duplicate and skipped", "current", logging.WARNING)
            elif not param.requires_grad:
                print_log(
                    f"{full_name} is skipped since its requires_grad=False",
                    "current",
                    logging.WARNING,
                )
            else:
                settings = self._settings(module, f"{prefix}.{name}", name, param)
                params.append({"params": [param], **settings})
        for child_name, child in module.named_children():
            self.add_params(params, child, f"{prefix}.{child_name}" if prefix else child_name)

    def _settings(
        self, module: nn.Module, full_name: str, name: str, param: nn.Parameter
    ) -> dict[str, Any]:
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

    def _decay_mult(
        self, module: nn.Module, name: str, param: nn.Parameter, is_norm: bool
    ) -> float | None:
        """Return the multiplier of the first rule that is set and applies to the parameter."""
        is_depthwise = isinstance(module, nn.Conv2d) and module.in_channels == module.groups
        rules = {
            "norm_decay_mult": is_norm,
            "bias_decay_mult": name == "bias",
            "dwconv_decay_mult": is_depthwise,
            "flat_decay_mult": param.ndim == 1,
        }
        for key, applies in rules.items():
            multiplier: float | None = self.paramwise_cfg.get(key)
            if applies and multiplier is not None:
                return multiplier
        return None


def _first_parameter(optimizer: Any) -> str:
    """Return the name of the parameter for the weights, usually `params`."""
    kind = OPTIMIZERS.get(optimizer) if isinstance(optimizer, str) else optimizer
    return next(iter(inspect.signature(kind).parameters), "params")
