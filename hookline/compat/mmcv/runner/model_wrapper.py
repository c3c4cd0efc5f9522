"""The model inside a wrapper such as `MMDataParallel`, and the versions of its modules."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.parallel import is_module_wrapper


def unwrap(module: Any) -> Any:
    """Return the model inside a wrapper, or the module itself."""
    return module.module if is_module_wrapper(module) else module


def module_versions(model: Any) -> dict[str, int]:
    """Return the versions of a model's modules, by name, that are not the first one."""
    versions = {}
    for name, module in unwrap(model).named_modules():
        if module._version not in (None, 1):
            versions[name] = module._version
    return versions
