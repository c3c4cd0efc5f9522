"""Initialize weights from configs such as `dict(type='Kaiming', layer='Conv2d')`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import nn

from hookline.compat.mmengine.registry import WEIGHT_INITIALIZERS
from hookline.errors import suggest

PRETRAINED = ("Pretrained", "PretrainedInit")


def _with_bias(module: nn.Module, fill: Callable[[Any], object], bias: float) -> None:
    if getattr(module, "weight", None) is not None:
        fill(module.weight)
    if getattr(module, "bias", None) is not None:
        nn.init.constant_(module.bias, bias)  # type: ignore[arg-type]


def constant_init(module: nn.Module, val: float, bias: float = 0) -> None:
    _with_bias(module, lambda weight: nn.init.constant_(weight, val), bias)


def xavier_init(
    module: nn.Module, gain: float = 1, bias: float = 0, distribution: str = "normal"
) -> None:
    fill = nn.init.xavier_uniform_ if distribution == "uniform" else nn.init.xavier_normal_
    _with_bias(module, lambda weight: fill(weight, gain=gain), bias)


def normal_init(module: nn.Module, mean: float = 0, std: float = 1, bias: float = 0) -> None:
    _with_bias(module, lambda weight: nn.init.normal_(weight, mean, std), bias)


def trunc_normal_init(
    module: nn.Module, mean: float = 0, std: float = 1, a: float = -2, b: float = 2, bias: float = 0
) -> None:
    _with_bias(module, lambda weight: nn.init.trunc_normal_(weight, mean, std, a, b), bias)


def uniform_init(module: nn.Module, a: float = 0, b: float = 1, bias: float = 0) -> None:
    _with_bias(module, lambda weight: nn.init.uniform_(weight, a, b), bias)


def kaiming_init(
    module: nn.Module,
    a: float = 0,
    mode: str = "fan_out",
    nonlinearity: str = "relu",
    bias: float = 0,
    distribution: str = "normal",
) -> None:
    fill: Any = nn.init.kaiming_uniform_ if distribution == "uniform" else nn.init.kaiming_normal_
    _with_bias(module, lambda weight: fill(weight, a=a, mode=mode, nonlinearity=nonlinearity), bias)


def caffe2_xavier_init(module: nn.Module, bias: float = 0) -> None:
    kaiming_init(
        module, a=1, mode="fan_in", nonlinearity="leaky_relu", bias=bias, distribution="uniform"
    )


def bias_init_with_prob(prior_prob: float) -> float:
    """Return the bias with which a sigmoid returns this probability."""
    return float(-math.log((1 - prior_prob) / prior_prob))


FUNCTIONS: dict[str, Callable[..., None]] = {
    "Constant": constant_init,
    "Xavier": xavier_init,
    "Normal": normal_init,
    "TruncNormal": trunc_normal_init,
    "Uniform": uniform_init,
    "Kaiming": kaiming_init,
    "Caffe2Xavier": caffe2_xavier_init,
}


def initialize(module: nn.Module, init_cfg: Any) -> None:
    """Initialize the layers of a module.

    Args:
        module: The module.
        init_cfg: One config or several. `layer` restricts a config to classes of layers, and
            `override` has exceptions for single attributes.
    """
    configs = [init_cfg] if isinstance(init_cfg, dict) else init_cfg
    for config in configs:
        _initialize(module, dict(config))


def _initialize(module: nn.Module, options: dict[str, Any]) -> None:
    kind = options.pop("type")
    layers = options.pop("layer", None)
    overrides = options.pop("override", None)
    if kind in PRETRAINED:
        _load(module, **options)
        return
    initializer = None if kind in FUNCTIONS else WEIGHT_INITIALIZERS.get(kind)
    if initializer is not None:
        initializer(layer=layers, **options)(module)
        return
    _apply(module, kind, layers, overrides is not None, options)
    if isinstance(overrides, dict):
        overrides = [overrides]
    for override in overrides or ():
        _override(module, dict(override), kind, options)


def _apply(
    module: nn.Module, kind: str, layers: Any, has_override: bool, options: dict[str, Any]
) -> None:
    function = _function(kind)
    if "bias_prob" in options:
        options["bias"] = bias_init_with_prob(options.pop("bias_prob"))
    names = {layers} if isinstance(layers, str) else set(layers or ())
    takes_all = not names and not has_override
    for part in module.modules():
        classes = {base.__name__ for base in type(part).__mro__}
        if takes_all or names & classes:
            function(part, **options)


def _override(
    module: nn.Module, override: dict[str, Any], kind: str, options: dict[str, Any]
) -> None:
    name = override.pop("name")
    part = getattr(module, name, None)
    if part is None:
        raise RuntimeError(f"module did not have attribute {name}, but init_cfg is {override}.")
    if "type" in override:
        _apply(part, override.pop("type"), None, False, override)
    else:
        _apply(part, kind, None, False, dict(options))


def _function(kind: str) -> Callable[..., None]:
    name = kind.removesuffix("Init")
    if name not in FUNCTIONS:
        raise KeyError(f"unknown initialization {kind}{suggest(kind, FUNCTIONS)}")
    return FUNCTIONS[name]


def _load(
    module: nn.Module, checkpoint: str, prefix: str | None = None, map_location: Any = None
) -> None:
    from hookline.compat.mmengine.runner.checkpoint import (
        load_checkpoint_with_prefix,
        load_state_dict,
        load_weights,
    )

    if prefix is None:
        weights = load_weights(checkpoint)
    else:
        weights = load_checkpoint_with_prefix(prefix, checkpoint)
    load_state_dict(module, weights, strict=False)
