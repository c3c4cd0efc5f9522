"""The base class of hooks written for `dl_framework`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from hookline import engine
from hookline.errors import parameter_error


class BaseHook(engine.BaseHook):
    """A hook with the hook points of `dl_framework`.

    Methods name the arguments that they need: `def after_epoch(self, epoch, model, metrics)`.

    Args:
        config: Parameters, available as `self.config`. `name`, `priority` and `frequency` become
            attributes, and so does `enabled`: while it is false, no hook point is called.
    """

    site_aliases: ClassVar[Mapping[str, str]] = {
        "before_training": "before_train",
        "before_step": "before_train_iter",
        "after_step": "after_train_iter",
        "after_training": "after_train",
    }
    config: Mapping[str, Any] = MappingProxyType({})
    enabled: bool = True

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})
        for key in ("name", "priority", "frequency", "enabled"):
            if self.config.get(key) is not None:
                setattr(self, key, self.config[key])
        if not isinstance(self.frequency, int) or self.frequency < 1:
            raise parameter_error(self, "frequency", "must be a whole number of at least 1")

    # Subclasses may call `super()`, so the hook points exist here and do nothing.

    def before_training(self, *args: Any, **kwargs: Any) -> None: ...
    def before_epoch(self, *args: Any, **kwargs: Any) -> None: ...
    def before_step(self, *args: Any, **kwargs: Any) -> None: ...
    def after_step(self, *args: Any, **kwargs: Any) -> None: ...
    def after_epoch(self, *args: Any, **kwargs: Any) -> None: ...
    def after_training(self, *args: Any, **kwargs: Any) -> None: ...
    def cleanup(self, *args: Any, **kwargs: Any) -> None: ...

    @classmethod
    def from_config(
        cls,
        *,
        name: str | None = None,
        priority: Any = None,
        frequency: int | None = None,
        **parameters: Any,
    ) -> BaseHook:
        """Make a hook from the entries of a config file; its config dict holds all of them."""
        config = dict(parameters)
        common = {"name": name, "priority": priority, "frequency": frequency}
        for key, value in common.items():
            if value is not None:
                config[key] = value
        return cls(config)

    def site_method(self, site: str) -> Callable[..., Any] | None:
        method = super().site_method(site)
        if method is None:
            return None
        implementation = getattr(method, "__func__", None)
        if implementation is vars(BaseHook).get(method.__name__, method):
            return None  # the method above, which does nothing

        @functools.wraps(method)
        def call_if_enabled(*args: Any, **kwargs: Any) -> Any:
            if self.enabled:
                return method(*args, **kwargs)
            return None

        return call_if_enabled
