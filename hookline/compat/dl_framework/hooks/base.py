"""The base class of hooks written for `dl_framework`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from hookline import engine


class BaseHook(engine.BaseHook):
    """A hook that is given one config dict, with the hook points of `dl_framework`.

    `name`, `priority`, `frequency` and `enabled` are taken from the config; the rest of it is for the subclass, as
    `self.config`. Methods name the arguments they want: `def after_epoch(self, epoch, model, metrics)`. While `enabled` is
    false, no hook point is called.
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
            raise ValueError(f"{type(self).__name__}: frequency must be a whole number of at least 1, got {self.frequency!r}")

    # Nothing happens here; they are for subclasses that call `super()`.

    def before_training(self, *args: Any, **kwargs: Any) -> None: ...
    def before_epoch(self, *args: Any, **kwargs: Any) -> None: ...
    def before_step(self, *args: Any, **kwargs: Any) -> None: ...
    def after_step(self, *args: Any, **kwargs: Any) -> None: ...
    def after_epoch(self, *args: Any, **kwargs: Any) -> None: ...
    def after_training(self, *args: Any, **kwargs: Any) -> None: ...
    def cleanup(self, *args: Any, **kwargs: Any) -> None: ...

    @classmethod
    def from_config(cls, *, name: str | None = None, priority: Any = None, frequency: int | None = None, **parameters: Any) -> BaseHook:
        """A hook from the entries of a config file, all of which it finds in its config dict."""
        common = {"name": name, "priority": priority, "frequency": frequency}
        return cls({**{key: value for key, value in common.items() if value is not None}, **parameters})

    def site_method(self, site: str) -> Callable[..., Any] | None:
        method = super().site_method(site)
        if method is None or getattr(method, "__func__", None) is BaseHook.__dict__.get(method.__name__, method):
            return None

        @functools.wraps(method)
        def if_enabled(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs) if self.enabled else None

        return if_enabled
