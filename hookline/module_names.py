"""The names of modules, classes and parameters, also if modules are wrapped or sharded."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

# torch's wrapper, which ActivationCheckpointHook uses, holds the module under this name.
WRAPPED = "._checkpoint_wrapped_module"


def named_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the parameters of a model with the names that they have in its `state_dict`."""
    for name, parameter in model.named_parameters():
        yield without_wrapper(name), parameter


def named_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Return the modules of a model by name, without wrappers; the model itself is not named."""
    found = {}
    for name, module in model.named_modules():
        if name:
            found[without_wrapper(name)] = module  # The wrapped module comes after its wrapper.
    return found


def class_name(module: nn.Module) -> str:
    """Return the name of a module's class, also if FSDP2 has put its own in front of it."""
    kind = type(module)
    first, *others = kind.__bases__
    if first.__name__ == "FSDPModule" and others:
        kind = others[0]
    return kind.__name__


def without_wrapper(name: str) -> str:
    """Return the name of a module or parameter without the part of its wrapper."""
    return name.replace(WRAPPED, "")
